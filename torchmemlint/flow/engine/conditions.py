"""Tests: what they are worth where their operands are known."""

from __future__ import annotations

from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from torchmemlint.flow.domain.heap import Mode, State
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import NUMBERS, External, Object, Ref
from torchmemlint.flow.domain.values import NONE, PLAIN, SOME, Value, constant
from torchmemlint.flow.models.containers import written_out

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, ">": gt, "<=": le, ">=": ge, "==": eq, "!=": ne}


def is_something(value: Value) -> bool:
    """Is it surely not None?"""
    if value.known:
        return value.constant is not None
    if value.constant is SOME:
        return True
    return bool(value.refs) and not value.open and not any(r.symbolic for r in value.refs)


def truth(state: State, value: Value) -> bool | None:
    """Return whether a value counts as true; None where that is not known."""
    if value.known:
        return bool(value.constant)
    if len(value.refs) == 1 and not value.open and not value.graph:
        return _truth_of(state, next(iter(value.each())))
    return None


def _truth_of(state: State, reference: Ref) -> bool | None:
    if reference.symbolic or isinstance(reference, (External, *NUMBERS)):
        return None
    if type(reference) is not Object:
        return True
    if reference.kind in (Kind.LIST, Kind.TUPLE, Kind.DICT):
        return None
    if reference.kind is Kind.MODE:
        return True if reference.about is Mode.OFF else None  # another one may be a flag that was asked
    return True if reference.kind in (Kind.OPTIMIZER, Kind.MODULE, Kind.PARTIAL, Kind.GUARDED) else None


def compared(state: State, operator: str, operands: list[Value]) -> Value:
    """Return the value of a comparison."""
    if operator == "not":
        known = truth(state, operands[0])
        return PLAIN if known is None else constant(not known)
    if len(operands) != 2:
        return PLAIN
    a, b = operands
    if operator in ("is", "is not"):
        return _identity(a, b, operator == "is")
    if operator in ("in", "not in"):
        return _membership(state, a, b, operator == "in")
    if a.known and b.known and operator in _ORDERS:
        try:
            return constant(_ORDERS[operator](a.constant, b.constant))
        except TypeError:
            return PLAIN
    if operator in ("==", "!=") and (a == NONE or b == NONE):
        return _identity(a, b, operator == "==")
    return PLAIN


def _identity(a: Value, b: Value, same: bool) -> Value:
    if a.known and b.known:
        return constant((a.constant is b.constant or a.constant == b.constant) is same)
    if (a == NONE and is_something(b)) or (b == NONE and is_something(a)):
        return constant(not same)
    return PLAIN


def _membership(state: State, a: Value, b: Value, inside: bool) -> Value:
    if not a.known:
        return PLAIN
    if b.known and isinstance(b.constant, str) and isinstance(a.constant, str):
        return constant((a.constant in b.constant) is inside)
    items = written_out(state, b)
    if items is None or not all(item.known for item in items):
        return PLAIN
    return constant(any(item.constant == a.constant for item in items) is inside)


def chosen(state: State, operator: str, operands: list[Value]) -> list[Value]:
    """Return those operands that `and` or `or` may give."""
    result: list[Value] = []
    for value in operands:
        known = truth(state, value)
        if known is None:
            result.append(value)
        elif known is (operator == "or"):
            return [value] if operator == "and" else [*result, value]  # one that decides for False is as good as False
        elif value is operands[-1]:
            result.append(value)
    return result or operands[-1:]
