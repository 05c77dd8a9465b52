"""The names that a condition depends on directly."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

_MANY = 16


def collect_tested(test: ast.expr, into: set[str]) -> None:
    """The names that an expression is made of, calls apart."""
    if isinstance(test, ast.Name):
        into.add(test.id)
    elif test.__class__ in _PARTS:
        for part in _PARTS[test.__class__](test):
            collect_tested(part, into)


def is_often(test: ast.expr) -> bool:
    """Does a test count to a few: `step % 3 == 0`?"""
    return any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Mod)
        and isinstance(part.right, ast.Constant)
        and isinstance(part.right.value, int)
        and part.right.value < _MANY
        for part in ast.walk(test)
    )


def _call_parts(node: ast.Call) -> list[ast.expr]:
    """Questions about a value itself are direct."""
    if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "bool", "callable"):
        return node.args[:1]
    return []


_PARTS: dict[type[ast.AST], Callable[[Any], list[ast.expr]]] = {
    ast.Compare: lambda node: [node.left, *node.comparators],
    ast.BoolOp: lambda node: node.values,
    ast.UnaryOp: lambda node: [node.operand],
    ast.BinOp: lambda node: [node.left, node.right],
    ast.NamedExpr: lambda node: [node.value],
    ast.Call: _call_parts,
}
TESTS = frozenset({ast.Name, *_PARTS})  # what `flag = ...` may stand for
