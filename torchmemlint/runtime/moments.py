"""Questions to a ledger about many moments at once, each answered in one go over its events. Knows nothing of torch."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence

from torchmemlint.runtime.growth import FEWEST, WARM_UP, Growth, growth
from torchmemlint.runtime.ledger import Ledger, Site

MOST = 200
"""Moments of a series that are looked at for lines: the last ones."""


def peaks_within(ledger: Ledger, spans: Sequence[tuple[int, int | None]], device: str) -> list[int]:
    """The most bytes that a device held at once within each span of events; spans may overlap.

    A span is the number of events before it and the number at its end; None stands for the end of the run.
    """
    held = [0]
    for _, _, change in (changes := list(ledger.changes(device))):
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


def growth_by_line(ledger: Ledger, marks: Sequence[int], device: str) -> dict[Site, Growth]:
    """The lines whose bytes grow from mark to mark for certain."""
    marks = list(marks)[WARM_UP:][-MOST:]
    if len(marks) < FEWEST:
        return {}
    live: Counter[Site] = Counter()
    series: defaultdict[Site, list[int]] = defaultdict(list)
    changed: set[Site] = set()
    done = 0

    def close() -> None:
        for site in changed:
            held = series[site]
            if len(held) < done + 1:
                held.extend([held[-1] if held else 0] * (done - len(held)))
                held.append(live[site])
        changed.clear()

    for event, index, change in ledger.changes(device):
        while done < len(marks) and event >= marks[done]:
            close()
            done += 1
        if done == len(marks):
            break
        site = ledger.site(index)
        live[site] += change
        changed.add(site)
    while done < len(marks):
        close()
        done += 1
    found: dict[Site, Growth] = {}
    for site, held in series.items():
        held.extend([held[-1]] * (len(marks) - len(held)))
        grown = growth(held, warm_up=0)
        if grown.certain:
            found[site] = grown
    return found
