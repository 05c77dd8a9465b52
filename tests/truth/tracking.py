"""Trees of a program's files that change, and lines that move along with their statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from .emission import Mark

Trees = dict[str, ast.Module]  # by the file's name
Change = Callable[[Trees], bool]  # changes the trees in place, and says whether it changed anything

REWRITINGS: dict[str, Change] = {}


def rewriting(change: Change) -> Change:
    """Offer a change of all files under its name."""
    REWRITINGS[change.__name__] = change
    return change


def each_file(change: Callable[[ast.Module], bool]) -> Change:
    """Offer a change of one file's tree under its name; it is made in each file."""

    def changed(trees: Trees) -> bool:
        changes = [change(tree) for tree in trees.values()]
        return any(changes)

    REWRITINGS[change.__name__] = changed
    return changed


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """All statements below, in the order of the text."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.stmt):
            yield child
        yield from statements(child)


def lines_of(statement: ast.stmt) -> list[int]:
    """The line that a statement begins on, and those of its decorators."""
    return [statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))]


def statements_at(tree: ast.Module, line: int) -> list[ast.stmt]:
    """The innermost statement that a line is part of, or those that share it."""
    found: list[ast.stmt] = []
    for statement in statements(tree):
        if min(lines_of(statement)) <= line <= (statement.end_lineno or statement.lineno):
            before = found[-1] if found else statement
            beside = before.end_lineno == line and (before.end_col_offset or 0) <= statement.col_offset
            found = [*found, statement] if beside else [statement]
    if not found:
        raise ValueError(f"no statement in line {line}")
    return found


def track(statement: ast.stmt, *marks: Mark) -> None:
    """Let the statement stand for these lines, too."""
    statement.tracked = {*tracked_by(statement), *marks}  # type: ignore[attr-defined]


def tracked_by(statement: ast.AST) -> set[Mark]:
    """The lines that the statement stands for."""
    marks: set[Mark] = getattr(statement, "tracked", set())
    return marks


def replaces(old: ast.stmt, *new: ast.stmt) -> list[ast.stmt]:
    """The new statements, which now stand for what the old one did."""
    for statement in new:
        track(statement, *tracked_by(old))
    return list(new)
