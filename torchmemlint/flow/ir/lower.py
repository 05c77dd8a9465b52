"""From the standard parser's tree to operations: each function is walked once."""

from __future__ import annotations

import ast

from . import (
    calls,
    comprehensions,
    definitions,
    expressions,
    patterns,
    statements,
)  # they enter themselves in the tables
from .building import Builder
from .ops import Function, Unit
from .scopes import resolve

__all__ = ["lower"]
_PARTS = (calls, comprehensions, definitions, expressions, patterns, statements)


def lower(text_or_tree: str | ast.Module, name: str) -> Unit:
    """The operations of a file. Syntax errors and those of too deep nesting are the caller's."""
    tree = ast.parse(text_or_tree) if isinstance(text_or_tree, str) else text_or_tree
    unit = Unit(name)
    last = tree.body[-1] if tree.body else None
    end = (last.end_lineno or 1, last.end_col_offset or 0) if last is not None else (1, 0)
    module = unit.module = Function("<module>", (1, 0, *end), unit, None, None)
    builder = Builder(unit, module)
    unit.exported = _exported(tree)
    builder.statements(tree.body)
    module.temps = builder.temps
    resolve(builder.scopes, unit)
    return unit


def _exported(tree: ast.Module) -> frozenset[str] | None:
    """What the last `__all__ = [...]` lists; None where there is none, or it is computed."""
    found: frozenset[str] | None = None
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names) | ast.Tuple(elts=names)):
                texts = [name.value for name in names if isinstance(name, ast.Constant)]
                found = frozenset(text for text in texts if isinstance(text, str)) if len(texts) == len(names) else None
            case ast.AugAssign(target=ast.Name(id="__all__")):
                return None
    return found
