"""The keys of items."""

from __future__ import annotations

import ast
from dataclasses import replace

from .building import EXPRESSIONS, Builder, computed_key
from .places import ComputedKey, ConstantKey, Key, SliceKey, Temp


class Whole(dict[str, SliceKey]):
    """Keys without temporaries by their layout: they are equal in all subscripts, so they are not made for each."""

    def __missing__(self, layout: str) -> SliceKey:
        key = self[layout] = SliceKey(layout=layout)
        return key


_whole = Whole()
WHOLE = _whole[""]


def dict_key(b: Builder, node: ast.expr) -> ConstantKey | ComputedKey:
    """Lower what stands before the colon in a dict."""
    if isinstance(node, ast.Constant):
        if node.value is None or isinstance(node.value, str | int):  # a bool, too
            return ConstantKey(node.value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = node.operand
        if isinstance(operand, ast.Constant) and type(operand.value) is int:
            return ConstantKey(-operand.value)
    return computed_key[EXPRESSIONS[node.__class__](b, node)]


def key_of(b: Builder, node: ast.expr) -> Key:
    """Lower what stands in the brackets."""
    if isinstance(node, ast.Slice):
        start = node.lower.value if isinstance(node.lower, ast.Constant) else 0
        part = _part(b, [node])
        if part.parts or node.upper is not None:
            part = replace(part, limited=True)
        return replace(part, start=start) if type(start) is int and start else part
    if isinstance(node, ast.Tuple):
        if any(_takes_part(element) for element in node.elts):
            return _part(b, node.elts)
    elif isinstance(node, ast.Constant) and node.value is ...:
        return _whole["."]
    return dict_key(b, node)


def _takes_part(node: ast.expr) -> bool:
    """Does an index among several make the result a part or another view: `:`, `...` or None?"""
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Constant) and (node.value is ... or node.value is None))


def _part(b: Builder, elements: list[ast.expr]) -> SliceKey:
    parts: list[Temp] = []
    layout = ""
    for element in elements:
        layout += _sign(element)
        if isinstance(element, ast.Slice):
            bounds = (element.lower, element.upper, element.step)
            parts += [
                b.expression(bound) for bound in bounds if bound is not None and bound.__class__ is not ast.Constant
            ]
        elif isinstance(element, ast.Starred):
            parts.append(b.expression(element.value))
        elif not isinstance(element, ast.Constant):
            parts.append(b.expression(element))
    return SliceKey(tuple(parts), single=len(elements) == 1, layout=layout) if parts else _whole[layout]


def _sign(element: ast.expr) -> str:
    if isinstance(element, ast.Slice):
        return ":"
    if isinstance(element, ast.Starred):
        return "*"
    if isinstance(element, ast.Constant):
        value = element.value
        return "+" if value is None else "." if value is ... else "0" if value == 0 and type(value) is int else "#"
    if isinstance(element, ast.UnaryOp) and isinstance(element.operand, ast.Constant):
        return "0" if isinstance(element.op, ast.USub) and element.operand.value == 1 else "#"
    return "+" if isinstance(element, ast.Attribute) and element.attr == "newaxis" else "#"
