"""Peaks of many spans of a run, in one go over its events. Knows nothing of torch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from torchmemlint.runtime.ledger import Ledger


def peaks_within(ledger: Ledger, spans: Sequence[tuple[int, int | None]], device: str, block: int = 1) -> list[int]:
    """The most bytes that a device held at once within each span of events; spans may overlap.

    A span is the number of events before it and the number at its end; None stands for the end of the run.
    """
    held = [0]
    for _, _, change in (changes := list(ledger.changes(device, block))):
        held.append(held[-1] + change)
    events = [event for event, _, _ in changes]
    highest = _Highest(held)
    found = []
    for begin, end in spans:
        first = _before(events, begin)
        last = len(events) if end is None else _before(events, end)
        found.append(highest.between(first, max(first, last)))
    return found


def _before(events: list[int], moment: int) -> int:
    """How many of a device's changes came before so many events of the run."""
    return bisect_left(events, moment)


class _Highest:
    """The largest of any stretch of a list, by the largest of its blocks."""

    _BLOCK = 64

    def __init__(self, values: list[int]) -> None:
        self._values = values
        self._blocks = [max(values[at : at + self._BLOCK]) for at in range(0, len(values), self._BLOCK)]

    def between(self, first: int, last: int) -> int:
        """The largest from `first` to `last`, both included."""
        block = self._BLOCK
        begin, end = -(-first // block), (last + 1) // block
        if begin >= end:
            return max(self._values[first : last + 1])
        edges = self._values[first : begin * block] + self._values[end * block : last + 1]
        return max([*edges, *self._blocks[begin:end]])
