"""In which function or class a row of a file stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.syntax.standard import parse


class Scopes:
    """The functions and classes of a text; none where it cannot be parsed."""

    def __init__(self, text: str) -> None:
        try:
            self._found = list(_definitions(parse(text).body, ""))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._found = []

    def at(self, row: int) -> str:
        """The dotted name of the innermost one around a row, `Trainer.validate`; empty at the top of the file."""
        return next((name for first, last, name in reversed(self._found) if first <= row <= last), "")


def _definitions(statements: list[ast.stmt], around: str) -> Iterator[tuple[int, int, str]]:
    """First row, last row and name of each, outer ones before what they hold."""
    for statement in statements:
        name = around
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{around}.{statement.name}" if around else statement.name
            first = min([statement.lineno, *(decorator.lineno for decorator in statement.decorator_list)])
            yield first, statement.end_lineno or first, name
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            yield from _definitions(getattr(statement, part, []), name)
