"""The cells of a notebook as one program, row by row.

Cells run in one name space, so what one of them keeps another one may release: they are looked at together, in their
order, with a comment between each two of them. What is no Python in them is passed over, and so is a cell that cannot
be read.
"""

from __future__ import annotations

import bisect
import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from torchmemlint.findings import Edit, Finding, Position, Span
from torchmemlint.immutable import immutable
from torchmemlint.source.magics import NEWLINE, Problem, PythonCell, python_of

_MARKER = "# %%"  # the percent format of Jupytext, Spyder and VS Code


@immutable()
class CellProgram:
    """The program that cells make: each row of a cell is a row of the program.

    Columns are the same but where something is left out at the beginning of a row (`outside`).
    """

    text: str
    shown: str  # the same rows as they stand in the cells
    first_rows: tuple[int, ...]  # of the program, by cell
    problems: tuple[Problem, ...]  # of the cells that cannot be read; places are the program's
    texts: tuple[str, ...]
    cells: tuple[PythonCell, ...]
    marker: str

    def place(self, row: int) -> tuple[int, int]:
        """The cell that a row of the program lies in, from 0, and the row within that cell, from 1."""
        cell = max(bisect.bisect_right(self.first_rows, row) - 1, 0)
        return cell, row - self.first_rows[cell] + 1

    def place_of(self, span: Span) -> tuple[int, Span]:
        """The cell that a stretch begins in, and the stretch within it (up to the cell's end)."""
        span = self._outside(span)
        cell, row = self.place(span.start.row)
        last, end_row = self.place(span.end.row)
        start = Position(row, span.start.column)
        if last != cell:
            return cell, Span(start, Position(len(self.cells[cell].rows) + 1, 1))
        return cell, Span(start, Position(end_row, span.end.column))

    def changed(self, text: str) -> list[str] | None:
        """The texts of the cells once the program reads `text`.

        None where the change goes over the border of a cell, or into what stands for something else.
        """
        if text == self.text:
            return list(self.texts)
        parts = _split(text, self.marker)
        if len(parts) != len(self.cells):
            return None
        found = []
        for before, cell, after in zip(self.texts, self.cells, parts, strict=True):
            changed = before if list(cell.rows) == after else _changed(before, cell, after)
            if changed is None:
                return None
            found.append(changed)
        return found

    def fits(self, text: str, changed: str) -> bool:
        """Is the step from one state of the program to another one within a cell?"""
        if self.changed(changed) is None:
            return False
        pairs = zip(_split(text, self.marker), _split(changed, self.marker), strict=True)
        return sum(before != after for before, after in pairs) <= 1

    def outside(self, finding: Finding) -> Finding:
        """A finding about the program with columns as in the cells."""
        if not any(cell.offsets for cell in self.cells):
            return finding
        fix = finding.fix
        return replace(
            finding,
            span=self._outside(finding.span),
            statement=self._outside(finding.statement),
            evidence=tuple(
                replace(one, span=self._outside(one.span)) if one.filename in (None, finding.filename) else one
                for one in finding.evidence
            ),
            fix=None if fix is None else replace(fix, edits=tuple(map(self._edit_outside, fix.edits))),
        )

    def _outside(self, span: Span) -> Span:
        return Span(self._position_outside(span.start), self._position_outside(span.end))

    def _position_outside(self, position: Position) -> Position:
        cell, row = self.place(position.row)
        offsets = self.cells[cell].offsets if cell < len(self.cells) else {}
        return Position(position.row, position.column + offsets.get(row - 1, 0))

    def _edit_outside(self, edit: Edit) -> Edit:
        cell, _ = self.place(edit.span.start.row)
        margin = self.cells[cell].margin
        first, *others = edit.content.split("\n")
        content = "\n".join([first, *(margin + row if row else row for row in others)])
        return Edit(self._outside(edit.span), content)


def program_of(cells: Sequence[str]) -> CellProgram:
    """The program that the texts of code cells make."""
    found = tuple(python_of(cell) for cell in cells)
    marker = _MARKER
    while any(marker in cell.rows for cell in found):
        marker += "%"
    rows: list[str] = []
    shown: list[str] = []
    first_rows: list[int] = []
    problems: list[Problem] = []
    for cell in found:
        if first_rows:
            rows.append(marker)
            shown.append("")
        first_rows.append(len(rows) + 1)
        if cell.problem is not None:
            at = cell.problem.position
            problems.append(Problem(cell.problem.message, Position(len(rows) + at.row, at.column)))
        rows += cell.rows
        shown += cell.own
    return CellProgram(
        "".join(row + "\n" for row in rows),
        "".join(row + "\n" for row in shown),
        tuple(first_rows) or (1,),
        tuple(problems),
        tuple(cells),
        found,
        marker,
    )


def _split(text: str, marker: str) -> list[list[str]]:
    """The rows of each cell."""
    parts: list[list[str]] = [[]]
    for row in text.split("\n")[:-1]:
        if row == marker:
            parts.append([])
        else:
            parts[-1].append(row)
    return parts


def _changed(text: str, cell: PythonCell, after: Sequence[str]) -> str | None:
    """The text of a cell whose Python is changed; None where the change touches what is not Python in it."""
    if cell.rigid:
        return None
    stand_ins = Counter(row for row in cell.rows if row in cell.stand_ins)
    if stand_ins != Counter(row for row in after if row in cell.stand_ins):
        return None
    ends = NEWLINE.findall(text)
    usual = Counter(ends).most_common(1)[0][0] if ends else "\n"
    rows: list[str] = []
    breaks: list[str] = []
    matcher = difflib.SequenceMatcher(None, cell.rows, after, autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind == "equal":
            rows += cell.own[first:last]
            breaks += [ends[number] if number < len(ends) else usual for number in range(first, last)]
        else:
            rows += [_own_row(row, cell) for row in after[start:end]]
            kept = [
                ends[number] if number < len(ends) else usual for number in range(first, min(last, first + end - start))
            ]
            breaks += kept + [usual] * (end - start - len(kept))
    return "".join(row + end for row, end in zip(rows[:-1], breaks, strict=False)) + rows[-1] if rows else ""


def _own_row(row: str, cell: PythonCell) -> str:
    return cell.stand_ins.get(row) or (cell.margin + row if row else row)
