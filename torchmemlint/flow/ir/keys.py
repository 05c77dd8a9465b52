"""The keys of items."""

from __future__ import annotations

import ast

from .building import EXPRESSIONS, Builder, computed_key
from .ops import ComputedKey, ConstantKey, Key, SliceKey, Temp

WHOLE = SliceKey()
_PLAIN = frozenset({int, str, bool, type(None)})


def dict_key(b: Builder, node: ast.expr) -> ConstantKey | ComputedKey:
    """Lower what stands before the colon in a dict."""
    kind = node.__class__
    if kind is ast.Constant:
        value = node.value  # type: ignore[attr-defined]
        if value.__class__ in _PLAIN:
            return ConstantKey(value)
    elif kind is ast.UnaryOp and node.op.__class__ is ast.USub:  # type: ignore[attr-defined]
        operand = node.operand  # type: ignore[attr-defined]
        if operand.__class__ is ast.Constant and operand.value.__class__ is int:
            return ConstantKey(-operand.value)
    return computed_key[EXPRESSIONS[kind](b, node)]


def key_of(b: Builder, node: ast.expr) -> Key:
    """Lower what stands in the brackets."""
    kind = node.__class__
    if kind is ast.Slice:
        return _part(b, [node])
    if kind is ast.Tuple:
        elements = node.elts  # type: ignore[attr-defined]
        if any(_takes_part(element) for element in elements):
            return _part(b, elements)
    elif kind is ast.Constant and node.value is ...:  # type: ignore[attr-defined]
        return WHOLE
    return dict_key(b, node)


def _takes_part(node: ast.expr) -> bool:
    """Does an index among several make the result a part or another view: `:`, `...` or None?"""
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Constant) and (node.value is ... or node.value is None))


def _part(b: Builder, elements: list[ast.expr]) -> SliceKey:
    parts: list[Temp] = []
    for element in elements:
        if isinstance(element, ast.Slice):
            bounds = (element.lower, element.upper, element.step)
            parts += [
                b.expression(bound) for bound in bounds if bound is not None and bound.__class__ is not ast.Constant
            ]
        elif isinstance(element, ast.Starred):
            parts.append(b.expression(element.value))
        elif not isinstance(element, ast.Constant):
            parts.append(b.expression(element))
    return SliceKey(tuple(parts)) if parts else WHOLE
