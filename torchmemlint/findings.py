"""The plain data types that every floor of the linter shares.

Rows and columns are 1-based and count Unicode characters of the decoded text, as in ruff's JSON;
an end position is exclusive in its column (it points just past the last character).
"""

from __future__ import annotations

import bisect
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torchmemlint.amounts import Amount
from torchmemlint.doubts import Confidence, Doubt, confidence
from torchmemlint.immutable import immutable
from torchmemlint.measured import Measured


class Severity(enum.Enum):
    """What happens if the code ships: see the rule catalogue in the documentation."""

    ADVICE = "advice"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for advice, 1 for warning, 2 for error."""
        return ("advice", "warning", "error").index(self.value)


class Applicability(enum.Enum):
    """How far a fix may be trusted."""

    SAFE = "safe"  # same results, same types seen by later code
    UNSAFE = "unsafe"  # may change numerics, timing or types
    HINT = "hint"  # shown to the reader, never applied


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file: row and column, both 1-based."""

    row: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of a file, from `start` up to but not including `end`."""

    start: Position
    end: Position

    def contains(self, other: Span) -> bool:
        """Whether another stretch of the same file lies within this one."""
        return self.start <= other.start and other.end <= self.end

    def text(self, rows: Sequence[str]) -> str:
        """The text of this stretch, given the rows of the file."""
        found = list(rows[self.start.row - 1 : self.end.row])
        if self.end.row <= len(rows):
            found[-1] = found[-1][: self.end.column - 1]
        found[0] = found[0][self.start.column - 1 :]
        return "\n".join(found)


@immutable(frozen=True)
class RawRow:
    """A row of a cell as it stands in the notebook's JSON."""

    start: Position
    escaped: str = ""  # what stands there, where a character of the row is not one there


@immutable(frozen=True)
class CellIndex:
    """Where the rows of a notebook's program stand: in which cell, for people, and in the file's text, for machines."""

    first_rows: tuple[int, ...]  # in the program, by cell
    numbers: tuple[int, ...]  # of these cells among all cells of the notebook, from 1
    raw: tuple[RawRow, ...]  # by row of the program; one more for its end

    def cell(self, row: int) -> int:
        """The number of the cell that a row of the program lies in."""
        return self.numbers[self._cell(row)]

    def within(self, position: Position) -> Position:
        """The place in its cell."""
        return Position(position.row - self.first_rows[self._cell(position.row)] + 1, position.column)

    def rows(self, row: int) -> tuple[int, int]:
        """The rows of the program that the cell of a row has: its first, and the one behind its last."""
        cell = self._cell(row)
        end = self.first_rows[cell + 1] - 1 if cell + 1 < len(self.first_rows) else len(self.raw)
        return self.first_rows[cell], end

    def in_file(self, position: Position) -> Position:
        """The place in the file as a text: the row of JSON that the row of the cell stands on."""
        from torchmemlint.source.notebook_json import column_within

        row = self.raw[min(position.row, len(self.raw)) - 1]
        before = column_within(row.escaped, position.column) if row.escaped else position.column - 1
        return Position(row.start.row, row.start.column + before)

    def _cell(self, row: int) -> int:
        return max(bisect.bisect_right(self.first_rows, row) - 1, 0)


@immutable(frozen=True)
class Evidence:
    """One link of the chain that made a value what it is."""

    message: str
    span: Span
    filename: Path | None = None  # None: the finding's own file


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the text of `span` by `content`; an empty span inserts."""

    span: Span
    content: str


@immutable(frozen=True)
class Fix:
    """A change that removes a finding. `narrower` is one that changes less, for where this one would do harm."""

    message: str
    applicability: Applicability
    edits: tuple[Edit, ...] = ()
    narrower: Fix | None = None


@immutable(frozen=True)
class Finding:
    """One report of one rule."""

    code: str
    name: str
    severity: Severity
    message: str
    filename: Path
    span: Span
    statement: Span  # of the (header of the) statement it stands in: where a suppression comment may be
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None
    why: str = ""  # why the pattern costs memory, one sentence
    doubts: tuple[Doubt, ...] = ()  # what could not be determined; decides the property `confidence`
    amount: Amount | None = None  # the bytes it concerns, as far as the sizes in the source tell
    fingerprint: str = field(default="", compare=False)  # see `fingerprints`; set by the engine
    former_fingerprint: str = field(default="", compare=False)  # by which older files of measurements know it
    measured: Measured | None = field(default=None, compare=False)  # by an earlier run of a program; set by the engine
    cells: CellIndex | None = field(default=None, compare=False, repr=False)  # set where it is a notebook's

    @property
    def confidence(self) -> Confidence:
        """How sure the finding is; its doubts decide."""
        return confidence(frozenset(self.doubts))


class Lead(enum.Enum):
    """What leads from one file of a project to another."""

    IMPORTED = "imported"  # the other imports it
    IMPORTS = "imports"  # it imports the other


@immutable(frozen=True)
class ContextFile:
    """A file that was run for what it says about another one."""

    path: Path
    lead: Lead
    by: Path  # the other one, of those that were checked the first to need it
