"""A fix is made within one cell, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.notebooks import within_cells
from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Severity, Span
from torchmemlint.fixes.apply import fix_text
from torchmemlint.source.cells import CellProgram, program_of

CELLS = ["import torch\n!ls\nx = 1", "    y = 2\n    z = 3", "%%bash\nls", "y = (", "%time f(x)\nend = 1"]
#        rows 1 to 3                  5 and 6               8 and 9       11      13 and 14


def program() -> CellProgram:
    return program_of(CELLS)


def edit(row: int, column: int, end_row: int, end_column: int, content: str) -> Edit:
    return Edit(Span(Position(row, column), Position(end_row, end_column)), content)


def finding(*edits: Edit, applicability: Applicability = Applicability.SAFE) -> Finding:
    span = edits[0].span
    fix = Fix("mend", applicability, edits)
    return Finding("TML101", "graph-accumulation", Severity.ERROR, "m", Path("n.ipynb"), span, span, fix=fix)


def kept(*edits: Edit) -> bool:
    (found,) = within_cells([finding(*edits)], program().text, program())
    assert found.fix is not None
    assert found.fix.edits == edits
    return found.fix.applicability is Applicability.SAFE


def test_the_rows_are_as_the_cases_take_them() -> None:
    rows = program().text.split("\n")
    assert [rows[number - 1] for number in (1, 3, 5, 6, 8, 11, 14)] == [
        *("import torch", "x = 1", "y = 2", "z = 3", "", "", "end = 1")
    ]
    assert rows[12].startswith("f(x)  #")


@pytest.mark.parametrize(
    "edits",
    [
        [edit(3, 5, 3, 6, "2")],
        [edit(3, 6, 3, 6, "\ndel x")],  # a row at the end of a cell
        [edit(3, 1, 4, 1, "")],  # its last row
        [edit(1, 1, 2, 1, ""), edit(3, 5, 3, 6, "2")],  # two places
        [edit(5, 5, 5, 6, "3")],  # in a cell with a margin
        [edit(14, 7, 14, 8, "2")],
    ],
)
def test_within_a_cell(edits: list[Edit]) -> None:
    assert kept(*edits)


@pytest.mark.parametrize(
    "edits",
    [
        [edit(1, 1, 1, 1, "import math\n"), edit(5, 5, 5, 6, "3")],  # an import for another cell
        [edit(3, 1, 5, 1, "")],  # the border
        [edit(3, 6, 4, 5, "")],
        [edit(2, 1, 3, 1, "")],  # a command
        [edit(2, 1, 2, 5, "x = 0")],
        [edit(8, 1, 8, 1, "x = 1")],  # the shell's cell
        [edit(11, 1, 11, 1, "x = 1")],  # a cell that cannot be read
        [edit(13, 3, 13, 4, "y")],  # what a magic times
    ],
)
def test_over_a_border_or_into_what_is_no_python(edits: list[Edit]) -> None:
    assert not kept(*edits)
    found = within_cells([finding(*edits)], program().text, program())
    result = fix_text(program().text, found, lambda text: [], unsafe=True)
    assert result.applied == ()
    assert result.text == program().text


def test_hints_stay_hints_and_findings_without_fixes_stay() -> None:
    hint = finding(edit(3, 5, 3, 6, "2"), applicability=Applicability.HINT)
    assert within_cells([hint], program().text, program()) == [hint]


def test_a_row_that_comes_is_given_the_margin_of_its_cell() -> None:
    text = program().text.replace("z = 3\n", "if y:\n    z = 3\n")
    changed = program().changed(text)
    assert changed is not None
    assert changed[1] == "    y = 2\n    if y:\n        z = 3"


def test_places_outside_have_the_columns_of_the_cell() -> None:
    found = program().outside(finding(edit(5, 5, 5, 6, "3\nw = 4")))
    assert (found.span.start.column, found.span.end.column) == (9, 10)
    assert found.fix is not None
    assert found.fix.edits[0].content == "3\n    w = 4"
    timed = program().outside(finding(edit(13, 3, 13, 4, "y")))
    assert timed.span.start.column == len("%time f(") + 1
