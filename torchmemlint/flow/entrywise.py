"""A loop that writes each entry of a dictionary anew: `for key in losses: losses[key] = losses[key].item()`."""

from __future__ import annotations

from typing import TypeGuard

import libcst as cst

from torchmemlint.flow import containers, type_tests
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Container
from torchmemlint.syntax.text import text_of

_COPYING = frozenset({"list", "tuple", "sorted"})  # whose result may be run over while the dictionary changes


def target_of(loop: cst.For) -> cst.Subscript | None:
    """The entry that the loop's body writes in each round, or in each where the old one is a tensor."""
    if not isinstance(loop.body, cst.IndentedBlock):
        return None
    over = _dictionary(loop.iter)
    if over is None:
        return None
    owner, keys_and_values = over
    key, value = _names(loop.target, keys_and_values)
    if not key:
        return None
    for statement in loop.body.body:
        match statement:
            case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=target)])]):
                if _is_entry(target, owner, key):
                    return target
            case cst.If(test=test, body=cst.IndentedBlock(body=[cst.SimpleStatementLine(body=[cst.Assign() as one])])):
                target = one.targets[0].target
                if _is_entry(target, owner, key) and _asks_for_tensor(test, (value, text_of(target))):
                    return target
            case cst.SimpleStatementLine(body=[cst.Continue() | cst.Break() | cst.Return() | cst.Raise()]):
                return None
            case cst.SimpleStatementLine():
                pass
            case _:
                return None  # it may go on to the next round
    return None


def replaced(it: Interpreter, target: cst.Subscript) -> None:
    """The loop has ended: nothing is left in the dictionary of what it held before."""
    value = it.written_each.pop(target, None)
    owner = it.evaluate(target.value)
    if value is None or not isinstance(owner, Container) or not containers.is_cut(value):
        return  # what is known of the old entries may be true of the new ones: `models[key] = prepare(models[key])`
    containers.empty(it, owner.oid)
    containers.store(it, owner, "[]", value, it.site(target))


def _dictionary(iterated: cst.BaseExpression) -> tuple[str, bool] | None:
    """The text of the dictionary that a loop runs over, and whether it takes the values out, too."""
    match iterated:
        case cst.Call(func=cst.Name(value=name), args=[cst.Arg(value=inner, star="")]) if name in _COPYING:
            return _dictionary(inner)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)), args=[]):
            return (text_of(owner), name == "items") if name in ("keys", "items", "copy") else None
        case cst.Name() | cst.Attribute():
            return text_of(iterated), False
    return None


def _names(target: cst.BaseExpression, keys_and_values: bool) -> tuple[str, str]:
    match target:
        case cst.Name(value=key) if not keys_and_values:
            return key, ""
        case cst.Tuple(elements=[cst.Element(value=cst.Name(value=key)), cst.Element(value=cst.Name(value=value))]):
            return (key, value) if keys_and_values else ("", "")
    return "", ""


def _is_entry(target: cst.BaseExpression, owner: str, key: str) -> TypeGuard[cst.Subscript]:
    match target:
        case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value=name)))]):
            return name == key and text_of(value) == owner
    return False


def _asks_for_tensor(test: cst.BaseExpression, texts: tuple[str, ...]) -> bool:
    found = type_tests.asked_of(test)
    return found is not None and found[1] and text_of(found[0]) in texts
