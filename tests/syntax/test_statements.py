"""Statements around a place, and as pieces of their own."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest

from torchmemlint.findings import Position, Span
from torchmemlint.syntax.source_module import SourceModule
from torchmemlint.syntax.walking import inside

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("TML[1-6]*/bad_*.py"))


def module(text: str) -> SourceModule:
    return SourceModule(text, Path("a.py"))


def at(text: str, part: str) -> Span:
    row, line = next((n, line) for n, line in enumerate(text.split("\n"), 1) if part in line)
    column = line.index(part) + 1
    return Span(Position(row, column), Position(row, column + len(part)))


@pytest.mark.parametrize(
    ("text", "part", "statement"),
    [
        ("x = f(1)\n", "f(1)", "x = f(1)"),
        ("if a:\n    x = f(1); y = 2\n", "f(1)", "x = f(1)"),
        ("for x in f(1):  # why\n    pass\n", "f(1)", "for x in f(1):  # why"),
        ("for x in f(\n    1,\n):\n    pass\n", "1", "for x in f(\n    1,\n):"),
        ("if a:\n    pass\nelif f(1):\n    pass\n", "f(1)", "elif f(1):"),
        ("if a: f(1)\n", "f(1)", "f(1)"),
        ("@f(1)\ndef g():\n    pass\n", "f(1)", "f(1)"),
        ("class A:\n    @f(1)\n    def g(self):\n        pass\n", "def g", "def g(self):"),
        ("try:\n    pass\nexcept f(1):\n    pass\n", "f(1)", "f(1)"),
        ("é = 'é', f(1)\n", "f(1)", "é = 'é', f(1)"),
    ],
)
def test_a_compound_statement_is_its_header(text: str, part: str, statement: str) -> None:
    source = module(text)
    assert source.statement_span(at(text, part)).text(source.rows) == statement


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name[:6]}-{path.stem}")
def test_a_statement_alone_has_its_calls_where_they_stand(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    source = module(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            span = source.span_of((node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))
            piece = source.piece_at(span)
            assert piece is not None
            found = [one for one in inside(piece.module) if isinstance(one, cst.Call) and piece.span(one) == span]
            assert len(found) == 1
            assert ast.dump(ast.parse(cst.Module([]).code_for_node(found[0]), mode="eval").body) == ast.dump(node)


def test_what_cannot_stand_alone_is_read_with_what_is_around_it() -> None:
    text = "try:\n    pass\nexcept f(1):\n    pass\n"
    piece = module(text).piece_at(at(text, "f(1)"))
    assert piece is not None
    assert piece.text.startswith("try:")
