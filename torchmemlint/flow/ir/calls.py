"""Calls, and the places that methods in place write back to."""

from __future__ import annotations

import ast

from torchmemlint.knowledge import operations

from .building import EXPRESSIONS, Builder, expression, given_plainly, span, where
from .conditions import collect_tested
from .keys import key_of
from .narrowing import mark_arguments
from .ops import Call, CallMethod, GetAttribute, GetItem, Load, Super
from .places import Argument, AttributePlace, ItemPlace, Name, Place, Spread, Temp

NAMED = Spread.NAMED


@expression("Call")
def call(b: Builder, node: ast.Call) -> Temp:
    """`f(x)`, `x.f(y)`."""
    func = node.func
    if isinstance(func, ast.Attribute):
        method = func.attr
        if method[-1] == "_" and works_in_place(method):
            return call_in_place(b, node, func)[0]
        value = func.value
        if value.__class__ is ast.Name:
            b.temps = (base := b.temps) + 1
            b.block.append(Load(b.function, where(value.__dict__), base, b.names[value.id]))
        else:
            base = EXPRESSIONS[value.__class__](b, value)
        given = arguments(b, node)
        b.mentions.add(method)
        if method == "set_grad_enabled":
            mark_arguments(b, node)
        b.temps = (dst := b.temps) + 1
        b.block.append(CallMethod(b.function, where(node.__dict__), dst, base, method, given, None))
        return dst
    if isinstance(func, ast.Name):
        if func.id == "super" and _is_super(b, node):
            b.temps = (dst := b.temps) + 1
            b.block.append(Super(b.function, span(node), dst))
            return dst
        if func.id == "set_grad_enabled":
            mark_arguments(b, node)
        b.temps = (callee := b.temps) + 1
        b.block.append(Load(b.function, where(func.__dict__), callee, b.names[func.id]))
    else:
        callee = EXPRESSIONS[func.__class__](b, func)
    given = arguments(b, node)
    b.temps = (dst := b.temps) + 1
    b.block.append(Call(b.function, where(node.__dict__), dst, callee, given))
    return dst


def arguments(b: Builder, node: ast.Call) -> tuple[Argument, ...]:
    """The arguments, evaluated in Python's order: those by position first."""
    given: list[Argument] = []
    for argument in node.args:
        if argument.__class__ is ast.Starred:
            value = argument.value
            given.append(Argument(Spread.STAR, "", EXPRESSIONS[value.__class__](b, value)))
        elif argument.__class__ is ast.Name:  # as most are: written out for speed
            b.temps = (temp := b.temps) + 1
            b.block.append(Load(b.function, where(argument.__dict__), temp, b.names[argument.id]))
            given.append(given_plainly[temp])
        else:
            given.append(given_plainly[EXPRESSIONS[argument.__class__](b, argument)])
    for keyword in node.keywords:
        value = keyword.value
        temp = EXPRESSIONS[value.__class__](b, value)
        name = keyword.arg
        if name is None:
            given.append(Argument(Spread.STARS, "", temp))
        else:
            b.mentions.add(name)
            if name == "requires_grad":  # whether there is a graph depends on it, as on a test
                collect_tested(value, b.frame.tested)
            given.append(Argument(NAMED, name, temp))
    return tuple(given)


def _is_super(b: Builder, node: ast.Call) -> bool:
    """Is it `super()`, or `super(Own, self)`?"""
    if not node.args:
        return not node.keywords
    first = node.args[0]
    if isinstance(first, ast.Attribute):
        return first.attr == "__class__"
    if not isinstance(first, ast.Name):
        return False
    if first.id == "__class__":
        return True
    cls = b.function.method.cls
    return cls is not None and cls.name == first.id


def works_in_place(method: str) -> bool:
    """Is it one of torch's methods that change their tensor?"""
    return method[-1] == "_" and method in operations.in_place()


def call_in_place(b: Builder, node: ast.Call, func: ast.Attribute) -> tuple[Temp, Place | None]:
    """`x.add_(y)`; the answer is also where x stands."""
    base, place = placed(b, func.value)
    given = arguments(b, node)
    b.mentions.add(func.attr)
    if isinstance(place, Name):
        b.frame.touched.append(place)
    dst = b.make(CallMethod, span(node), base, func.attr, given, place)
    return dst, place


def placed(b: Builder, node: ast.expr) -> tuple[Temp, Place | None]:
    """Lower the operand of an operation in place; the answer is also where it stands.

    `x.add_(y)` is what stands at x. `x.data` is not: what is done with it changes no graph of x.
    """
    if isinstance(node, ast.Name):
        return EXPRESSIONS[ast.Name](b, node), b.names[node.id]
    place: Place | None
    if isinstance(node, ast.Attribute):
        base = b.expression(node.value)
        b.stores(node.attr)
        place = AttributePlace(base, node.attr) if node.attr != "data" else None
        b.mentions.add(node.attr)
        dst = b.make(GetAttribute, span(node), base, node.attr)
        return dst, place
    if isinstance(node, ast.Subscript):
        base = b.expression(node.value)
        key = key_of(b, node.slice)
        dst = b.make(GetItem, span(node), base, key)
        return dst, ItemPlace(base, key)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and works_in_place(node.func.attr):
        return call_in_place(b, node, node.func)
    return b.expression(node), None
