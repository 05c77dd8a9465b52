"""What rewritings ask of a tree."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef


def blocks(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Every list of statements below, with what has it."""
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield node, block


def names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> set[str]:
    """The names that are bound (`ast.Store`) or used (`ast.Load`) there."""
    return {
        node.id
        for root in nodes
        for node in ast.walk(root)
        if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    }


def imports_of(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """The imports at the top of a module."""
    return [statement for statement in tree.body if isinstance(statement, (ast.Import, ast.ImportFrom))]


def imported(statements: Iterable[ast.Import | ast.ImportFrom]) -> set[str]:
    """The names that imports bind."""
    return {(alias.asname or alias.name).split(".")[0] for one in statements for alias in one.names}


def module_names(tree: ast.Module) -> set[str]:
    """What is bound at the top of a module, and what is built in."""
    found = set(dir(builtins)) | imported(imports_of(tree))
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(statement.name)
        elif not isinstance(statement, (ast.Import, ast.ImportFrom)):
            found |= names([statement], ast.Store)
    return found


def contains(nodes: Iterable[ast.AST], *kinds: type[ast.AST]) -> bool:
    """Whether one of these kinds occurs below."""
    return any(isinstance(node, kinds) for root in nodes for node in ast.walk(root))


def parsed(text: str) -> list[ast.stmt]:
    """The statements of a text."""
    return ast.parse(text).body


def expression(text: str) -> ast.expr:
    """The expression of a text."""
    return ast.parse(text, mode="eval").body


def after_docstring(body: list[ast.stmt]) -> int:
    """Where a statement can be put first in a body."""
    match body:
        case [ast.Expr(ast.Constant(value=str())), *_]:
            return 1
    return 0


def after_imports(tree: ast.Module) -> int:
    """Where a definition can be put first in a module."""
    return max([after_docstring(tree.body), *(tree.body.index(one) + 1 for one in imports_of(tree))])
