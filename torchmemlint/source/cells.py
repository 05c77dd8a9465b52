"""The cells of a notebook as one program, row by row.

Cells run in one name space, so what one of them keeps another one may release: they are looked at together, in their
order. What is not Python in them (magics, shell commands, questions) is passed over, and so is a cell that cannot be
read.
"""

from __future__ import annotations

import ast
import bisect
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from torchmemlint.findings import Position, Span

_NEWLINE = re.compile(r"\r\n|\r|\n")
_WHOLE_CELL = re.compile(r"\s*%%(?P<name>\w+)")
# Cell magics whose cell is Python that runs in the notebook's own name space.
_PYTHON_CELLS = frozenset({"capture", "prun", "time", "timeit"})
_COMMAND = re.compile(r"(?P<indent>\s*)(?:[%!?].*|[\w.*]+\?{1,2}\s*)$")
_ASSIGNED_COMMAND = re.compile(r"(?P<target>\s*[\w.,\s\[\]\"']+=\s*)(?:!|%{1,2}\w).*$")


@dataclass(frozen=True, slots=True)
class CellProgram:
    """The program that cells make: each row of a cell is a row of the program, columns are the same."""

    text: str
    first_rows: tuple[int, ...]  # of the program, by cell

    def place(self, row: int) -> tuple[int, int]:
        """The cell that a row of the program lies in, from 0, and the row within that cell, from 1."""
        cell = max(bisect.bisect_right(self.first_rows, row) - 1, 0)
        return cell, row - self.first_rows[cell] + 1

    def place_of(self, span: Span) -> tuple[int, Span]:
        """The cell that a stretch begins in, and the stretch within it (up to the cell's end)."""
        cell, row = self.place(span.start.row)
        last, end_row = self.place(span.end.row)
        start = Position(row, span.start.column)
        if last != cell:
            return cell, Span(start, Position(self.first_rows[cell + 1] - self.first_rows[cell], 1))
        return cell, Span(start, Position(end_row, span.end.column))


def program_of(cells: Sequence[str]) -> CellProgram:
    """The program that the texts of code cells make."""
    parts: list[str] = []
    first_rows: list[int] = []
    row = 1
    for cell in cells:
        first_rows.append(row)
        lines = _python(cell)
        parts += [line + "\n" for line in lines]
        row += len(lines)
    return CellProgram("".join(parts), tuple(first_rows) or (1,))


@lru_cache(maxsize=256)  # of the cells of a notebook that is being written, one changes
def _python(cell: str) -> tuple[str, ...]:
    """The lines of a cell with everything that is not Python passed over."""
    lines = _NEWLINE.split(cell)
    head = next((line for line in lines if line.strip()), "")
    magic = _WHOLE_CELL.match(head)
    if magic is not None and magic["name"] not in _PYTHON_CELLS:
        return ("",) * len(lines)
    found = list(lines)
    while (row := _unreadable_row(found)) is not None:
        # A `%` may be an operator and a `!` stand in a string: only where Python cannot go on is it a command.
        plain = _plain(found[row - 1]) if 0 < row <= len(found) else None
        if plain is None or plain == found[row - 1]:
            return ("",) * len(lines)
        found[row - 1] = plain
    return tuple(found)


def _plain(line: str) -> str | None:
    """What stands for a command; None for a line that holds none."""
    if command := _COMMAND.match(line):
        return f"{command['indent']}pass"
    if command := _ASSIGNED_COMMAND.match(line):
        return f"{command['target']}None"
    return None


def _unreadable_row(lines: list[str]) -> int | None:
    """The row, from 1, at which Python gives up; 0 where it cannot say; None where it reads all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse("\n".join(lines))
        except SyntaxError as error:
            return error.lineno or 0
        except (ValueError, RecursionError, MemoryError):
            return 0
    return None
