"""What values are assigned to."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .building import Builder, span, where
from .calls import placed
from .keys import key_of
from .ops import Bind, GetItem, SetAttribute, SetItem, Unpack
from .places import Name, SliceKey, Temp


def assign(b: Builder, target: ast.expr, src: Temp) -> None:
    """Assign a value to any target."""
    _ASSIGNMENTS[target.__class__](b, target, src)


def _name(b: Builder, target: ast.Name, src: Temp) -> None:
    if b.class_scope is not None:
        b.bind(target.id, src, span(target))
        return
    name = b.names[target.id]
    b.binds.append(name)
    b.block.append(Bind(b.function, where(target.__dict__), name, src))


def _attribute(b: Builder, target: ast.Attribute, src: Temp) -> None:
    _put(b, src)
    base, place = b.expression(target.value), None
    if target.attr == "requires_grad" and isinstance(target.value, ast.Name):
        place = b.names[target.value.id]
        b.frame.touched.append(place)
    b.mentions.add(target.attr)
    b.stores(target.attr)
    b.block.append(SetAttribute(b.function, span(target), base, target.attr, src, place))


def _put(b: Builder, src: Temp) -> None:
    """Note of a slice that it is put somewhere."""
    made = b.block[-1] if b.block else None
    if type(made) is GetItem and made.dst == src and type(made.key) is SliceKey and made.key.limited:
        made.key = replace(made.key, put=True)


def _item(b: Builder, target: ast.Subscript, src: Temp) -> None:
    _put(b, src)
    base, place = placed(b, target.value)
    key = key_of(b, target.slice)
    if isinstance(place, Name):
        b.frame.touched.append(place)
    b.block.append(SetItem(b.function, span(target), base, key, src, place))


def _several(b: Builder, target: ast.Tuple | ast.List, src: Temp) -> None:
    elements = target.elts
    first = b.temps
    b.temps += len(elements)
    temps = range(first, b.temps)
    star = -1
    op = Unpack(b.function, span(target), tuple(temps), star, src)
    b.block.append(op)
    for index, element in enumerate(elements):
        if isinstance(element, ast.Starred):
            op.star = index
            element = element.value
        _ASSIGNMENTS[element.__class__](b, element, first + index)


def _alone(b: Builder, target: ast.Starred, src: Temp) -> None:
    """`*x = y`, which the parser lets pass and the compiler does not."""
    assign(b, target.value, src)


_ASSIGNMENTS: dict[type[ast.AST], Callable[[Builder, Any, Temp], None]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _item,
    ast.Tuple: _several,
    ast.List: _several,
    ast.Starred: _alone,
}


def names_in(target: ast.expr) -> list[str]:
    """The names that a target binds."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for element in target.elts for name in names_in(element)]
    if isinstance(target, ast.Starred):
        return names_in(target.value)
    return []
