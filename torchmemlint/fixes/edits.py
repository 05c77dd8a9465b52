"""Applying text edits: nothing outside their spans ever changes.

Rows end at `\\n`, `\\r\\n` or `\\r`, as in Python's own tokenizer (a form feed does not end a row).
A byte-order mark at the start of the text is not counted as a column.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from torchmemlint.findings import Edit, Position
from torchmemlint.immutable import immutable

BOM = "\ufeff"
_NEWLINE = re.compile(r"\r\n|\r|\n")


class EditError(ValueError):
    """Edits that cannot be applied: outside the text, or overlapping each other."""


@immutable()
class TextIndex:
    """Where the rows of one text begin, for turning positions into offsets and back."""

    starts: tuple[int, ...]  # offset of the first character of each row
    length: int  # characters in the text

    @classmethod
    def of(cls, text: str) -> TextIndex:
        """Index `text`."""
        first = len(BOM) if text.startswith(BOM) else 0
        return cls((first, *(match.end() for match in _NEWLINE.finditer(text))), len(text))

    def offset(self, position: Position) -> int:
        """Offset of `position` in characters from 0; EditError where the text has no such place."""
        if not 1 <= position.row <= len(self.starts) or position.column < 1:
            raise EditError(f"line {position.row}, column {position.column} is outside the file")
        found = self.starts[position.row - 1] + position.column - 1
        limit = self.starts[position.row] if position.row < len(self.starts) else self.length
        if found > limit:
            raise EditError(f"line {position.row}, column {position.column} is outside the file")
        return found

    def position(self, offset: int) -> Position:
        """Row and column of a character offset."""
        row = max(bisect_right(self.starts, offset), 1)
        return Position(row, max(offset - self.starts[row - 1], 0) + 1)


@dataclass(frozen=True, slots=True, order=True)
class Replacement:
    """An edit in offsets of the old text: `content` takes the place of the characters `start:end`."""

    start: int
    end: int
    content: str


def newline_of(text: str) -> str:
    r"""The text's line ending: that of its first row, `\n` where it has only one row."""
    found = _NEWLINE.search(text)
    return found.group() if found else "\n"


def resolve(text: str, edits: Iterable[Edit], index: TextIndex | None = None) -> tuple[Replacement, ...]:
    """The edits as replacements in the order of the text; equal ones become one.

    Line endings inside the new content become those of the text.
    Raises EditError where an edit is outside the text or two of them overlap.
    """
    index = index or TextIndex.of(text)
    newline = newline_of(text)
    found: set[Replacement] = set()
    for edit in edits:
        start, end = index.offset(edit.span.start), index.offset(edit.span.end)
        if start > end:
            raise EditError(f"the span at line {edit.span.start.row} ends before it starts")
        found.add(Replacement(start, end, _NEWLINE.sub(lambda _: newline, edit.content)))
    ordered = tuple(sorted(found))
    for before, after in itertools.pairwise(ordered):
        if clash(before, after):
            raise EditError(f"two edits overlap at line {index.position(after.start).row}")
    return ordered


def clash(one: Replacement, other: Replacement) -> bool:
    """Whether two different edits cannot both be made.

    They share a character, or both insert at the same place (whose order would be a guess).
    An insertion at the edge of a replaced stretch is fine.
    """
    if one == other:
        return False
    match one.start == one.end, other.start == other.end:
        case True, True:
            return one.start == other.start
        case True, False:
            return other.start < one.start < other.end
        case False, True:
            return one.start < other.start < one.end
        case _:
            return max(one.start, other.start) < min(one.end, other.end)


def compatible(groups: Sequence[tuple[Replacement, ...]]) -> list[int]:
    """Indices of the groups that can be made together; of two that conflict, the first stays.

    A group is taken whole or not at all.
    """
    taken: list[Replacement] = []  # in order; none clashes with another
    kept: list[int] = []
    for number, group in enumerate(groups):
        if any(clash(old, new) for new in group for old in _about(taken, new)):
            continue
        for new in group:
            at = bisect_left(taken, new)
            if taken[at : at + 1] != [new]:
                taken.insert(at, new)
        kept.append(number)
    return kept


def _about(taken: Sequence[Replacement], new: Replacement) -> Iterator[Replacement]:
    """Yield those of some replacements, which are in order, that begin or end where another one lies."""
    at = bisect_left(taken, new)
    yield from itertools.takewhile(lambda one: one.start <= new.end, itertools.islice(taken, at, None))
    for number in range(at - 1, -1, -1):
        if taken[number].end < new.start:
            return
        yield taken[number]


def replace(text: str, replacements: Iterable[Replacement]) -> str:
    """The text with all replacements made; they must not overlap (see `resolve`)."""
    pieces: list[str] = []
    at = 0
    for change in sorted(set(replacements)):
        pieces += [text[at : change.start], change.content]
        at = change.end
    return "".join(pieces) + text[at:]


def composed(text: str, first: tuple[Replacement, ...], second: tuple[Replacement, ...]) -> tuple[Replacement, ...]:
    """Replacements that do to `text` what `first` does, and then `second` to what that makes of it."""
    if not second:
        return first
    after = replace(text, first)
    changed: list[tuple[int, int, int]] = []  # stretches of `after`, and how far the text behind has moved
    moved = 0
    for one in sorted(set(first)):
        start = one.start + moved
        moved += len(one.content) - (one.end - one.start)
        changed.append((start, start + len(one.content), moved))
    stretches: list[tuple[int, int, int | str]] = [*changed, *((one.start, one.end, one.content) for one in second)]
    stretches.sort(key=lambda one: one[:2])
    found: list[Replacement] = []
    before = moved = at = 0  # how far the text before a stretch has moved, and that behind it
    while at < len(stretches):
        low, high, _ = stretches[at]
        before = moved
        own: list[Replacement] = []
        while at < len(stretches) and stretches[at][0] <= high:
            start, end, change = stretches[at]
            high = max(high, end)
            if isinstance(change, str):
                own.append(Replacement(start - low, end - low, change))
            else:
                moved = change
            at += 1
        found.append(Replacement(low - before, high - moved, replace(after[low:high], own)))
    return tuple(found)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made, in whatever order they are given; EditError where they overlap."""
    return replace(text, resolve(text, edits))
