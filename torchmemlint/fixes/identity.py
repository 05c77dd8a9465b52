"""Following findings through a change of the text: which of the new ones were there before."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from torchmemlint.findings import Finding, Span
from torchmemlint.fixes.edits import EditError, Replacement, TextIndex
from torchmemlint.immutable import immutable


@dataclass(frozen=True)
class Change:
    """A step from one text to the next, by replacements in the order of the text that do not overlap."""

    before: str
    after: str
    replacements: tuple[Replacement, ...]

    def image(self, start: int) -> tuple[int, int]:
        """Where the character at offset `start` of the old text may stand in the new text: first and last offset.

        Exact outside the replacements; anywhere in the new content for what was replaced or stands at an edge.
        """
        low: int | None = None
        number = bisect_left(self._ends, start)
        while number < len(self.replacements) and (change := self.replacements[number]).start <= start:
            shift = self._shifts[number]
            low = change.start + shift if low is None else low
            if change.end > start:
                return low, change.start + shift + len(change.content)
            number += 1
        shift = self._shifts[number]
        return start + shift if low is None else low, start + shift

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of the new text stood in the old one; what was written anew, where it took the place."""
        first, last = bisect_right(self._begins, start) - 1, bisect_left(self._begins, end) - 1
        low, high = start - self._shifts[first + 1], end - self._shifts[last + 1]
        if first >= 0 and start < self._begins[first] + len(self.replacements[first].content):
            low = self.replacements[first].start
        if last >= 0 and end <= self._begins[last] + len(self.replacements[last].content):
            high = self.replacements[last].end
        return low, high

    def kept(self, offset: int) -> int | None:
        """Where the character at an offset of the new text stood in the old one; None of one that is new."""
        number = bisect_right(self._begins, offset) - 1
        if number >= 0 and offset < self._begins[number] + len(self.replacements[number].content):
            return None
        return offset - self._shifts[number + 1]

    def whole(self, start: int, end: int) -> tuple[int, int]:
        """A stretch of the old text, with all of what was replaced of what it begins or ends in."""
        first, last = bisect_right(self._starts, start) - 1, bisect_left(self._starts, end) - 1
        low = self._starts[first] if first >= 0 and start < self._ends[first] else start
        return low, self._ends[last] if last >= 0 and end <= self._ends[last] else end

    @cached_property
    def _starts(self) -> list[int]:
        return [change.start for change in self.replacements]

    @cached_property
    def _begins(self) -> list[int]:
        """Where the new content of each begins."""
        return [change.start + shift for change, shift in zip(self.replacements, self._shifts, strict=False)]

    @cached_property
    def _ends(self) -> list[int]:
        return [change.end for change in self.replacements]

    @cached_property
    def _shifts(self) -> list[int]:
        """How far the text has moved before each replacement, and behind the last."""
        moved = (len(change.content) - (change.end - change.start) for change in self.replacements)
        return list(accumulate(moved, initial=0))


@immutable()
class Comparison:
    """What became of the findings."""

    kept: tuple[Finding, ...]  # of the old ones: those that are still there
    new: tuple[Finding, ...]  # of the new ones: those that were not there


def compare(
    change: Change, before: Sequence[Finding], after: Sequence[Finding], fixed: Sequence[Finding]
) -> Comparison:
    """Pair the findings of both texts, each with at most one of the other side.

    Two are the same if they have the same code and start at the same place, followed through the change; or,
    for those whose place moved in a way that the edits do not show, the same code and the same line of text.
    Where a finding could be either a `fixed` one or another, it is the other.
    """
    old_index, new_index = TextIndex.of(change.before), TextIndex.of(change.after)
    # By identity: two equal findings are two findings.
    fixed_ids = {id(finding) for finding in fixed}
    waiting: dict[str, list[Finding]] = defaultdict(list)
    for finding in sorted(before, key=lambda finding: id(finding) in fixed_ids):
        waiting[finding.code].append(finding)
    kept: list[Finding] = []

    def take(candidate: Finding, old: Finding) -> None:
        kept.append(old)
        rest = waiting[candidate.code]
        del rest[next(place for place, finding in enumerate(rest) if finding is old)]

    unplaced: list[Finding] = []
    for candidate in after:
        start = _offset(new_index, candidate.span)
        for old in waiting[candidate.code]:
            low, high = change.image(_offset(old_index, old.span))
            if low <= start <= high:
                take(candidate, old)
                break
        else:
            unplaced.append(candidate)
    new: list[Finding] = []
    for candidate in unplaced:
        line = _line(change.after, new_index, candidate.span)
        for old in waiting[candidate.code]:
            if _line(change.before, old_index, old.span) == line:
                take(candidate, old)
                break
        else:
            new.append(candidate)
    return Comparison(tuple(kept), tuple(new))


def _offset(index: TextIndex, span: Span) -> int:
    """Where a span starts; past the end for one that is not in the text (an unreadable file's)."""
    try:
        return index.offset(span.start)
    except EditError:
        return index.length


def _line(text: str, index: TextIndex, span: Span) -> str:
    """The row that a span starts on, with its blanks made one."""
    if not 1 <= span.start.row <= len(index.starts):
        return ""
    end = index.starts[span.start.row] if span.start.row < len(index.starts) else index.length
    return " ".join(text[index.starts[span.start.row - 1] : end].split())
