"""Pylint's parseable format, which many tools read: `path:row: [CODE(name), function] message`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import asides, file_position, one_line, printed_path, with_cell

_Scopes = tuple[tuple[int, int, str], ...]  # first row, last row, dotted name


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """A line for each finding."""
    scopes_of = _reader(report)
    for finding in report.findings:
        row = finding.span.start.row
        inner = [name for first, last, name in scopes_of(finding.filename) if first <= row <= last]
        scope = inner[-1] if inner else ""  # as Pylint itself has it for a module
        path = printed_path(finding.filename, root)
        in_file = file_position(finding, finding.span.start).row
        text = " ".join((one_line(with_cell(finding.message, finding)), *asides(finding, root)))
        yield f"{path}:{in_file}: [{finding.code}({finding.name}), {scope}] {text}"


def _reader(report: RunReport) -> Callable[[Path], _Scopes]:
    @cache
    def scopes_of(path: Path) -> _Scopes:
        try:
            return tuple(_scopes(ast.parse("\n".join(report.sources(path))), ""))
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # no Python, or that of another version
            return ()

    return scopes_of


def _scopes(node: ast.AST, outer: str) -> Iterator[tuple[int, int, str]]:
    """The functions and classes in a piece of code, each before those in it."""
    for child in ast.iter_child_nodes(node):
        name = outer
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{outer}.{child.name}" if outer else child.name
            yield child.lineno, child.end_lineno or child.lineno, name
        yield from _scopes(child, name)
