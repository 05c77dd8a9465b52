"""A place in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchmemlint.flow.ir.ops import Span


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A stretch of a file; lines from 1, columns in bytes of UTF-8 from 0, as in `ast`."""

    path: Path
    span: Span

    def contains(self, other: Place) -> bool:
        """Does it contain another place?"""
        (first, start, last, end), (row, column, end_row, end_column) = self.span, other.span
        return self.path == other.path and (first, start) <= (row, column) and (end_row, end_column) <= (last, end)
