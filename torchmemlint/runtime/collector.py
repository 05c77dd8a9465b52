"""The garbage collector while a program is measured: what it frees, and how long that waited. Knows nothing of torch.

What a reference cycle holds goes when the collector comes by, which what a GPU lacks does not bring about.
"""

from __future__ import annotations

import contextlib
import gc
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from torchmemlint.immutable import immutable
from torchmemlint.runtime.growth import FEWEST
from torchmemlint.runtime.holders import Holder
from torchmemlint.runtime.ledger import ALIVE, Ledger, Site

_TURNS = 2
"""Turns that a storage must have waited."""
_SHARE = 0.1
"""The share of the peak that must have waited at once."""


@contextlib.contextmanager
def watching_collections(ledger: Ledger) -> Iterator[None]:
    """While entered, collections that freed something are written down in a ledger."""
    began = 0

    def collected(phase: str, info: Mapping[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = ledger.now
        elif ledger.now > began:
            ledger.collections.append((began, ledger.now))

    gc.callbacks.append(collected)
    try:
        yield
    finally:
        gc.callbacks.remove(collected)


@immutable()
class Waiting:
    """What one line made that waited for the collector. `most` are the bytes that waited at once, `freed` all of them.

    `cycle` is what held them, as a look at the program found it; `collections` freed some, `turns` is the longest wait.
    """

    site: Site
    most: int
    freed: int
    storages: int
    collections: int
    turns: int
    cycle: Holder | None

    @property
    def line(self) -> Site:
        """Where the cycle is closed, as far as the source shows it; else the line that made its bytes."""
        return self.cycle.filled[0] if self.cycle is not None and self.cycle.filled else self.site


def find_waiting(
    ledger: Ledger, device: str, marks: Sequence[int], cycles: Mapping[int, Holder], end: int
) -> list[Waiting]:
    """What waited for the collector on a device, most first; `marks` are the ends of turns.

    `cycles` tells by record what a look found to be held by a cycle and by nothing else; what of that lives still
    at the `end` waits to this day.
    """
    by_line: dict[Site, list[tuple[int, int, int]]] = {}  # record, and from when to when it waited
    which: dict[Site, set[int]] = {}
    for index in range(len(ledger)):
        if ledger.device(index) != device or ledger.born(index) >= end:
            continue
        died = ledger.died(index)
        number = _collection_at(ledger.collections, died)
        if number is None and not (index in cycles and (died == ALIVE or died >= end)):
            continue
        until = end if died == ALIVE else min(died, end)
        since = ledger.used(index)
        site = ledger.site(index)
        by_line.setdefault(site, []).append((index, since, until))
        which.setdefault(site, set()).update(() if number is None else (number,))
    found = []
    for site, waits in by_line.items():
        longest = max(_between(marks, since, until) for _, since, until in waits)
        most = _most_at_once([(since, until, ledger.nbytes(index)) for index, since, until in waits])
        cycle = next((cycles[index] for index, _, _ in waits if index in cycles), None)
        total = sum(ledger.nbytes(index) for index, _, _ in waits)
        if longest > _TURNS and len(waits) >= FEWEST:
            found.append(Waiting(site, most, total, len(waits), len(which[site]), longest, cycle))
    if sum(one.most for one in found) < _SHARE * ledger.peaks.get(device, 0):
        return []
    return sorted(found, key=lambda one: -one.most)


def _collection_at(collections: Sequence[tuple[int, int]], event: int) -> int | None:
    """The number of the collection in which an event lies; they follow each other."""
    number = bisect_right(collections, event, key=lambda span: span[0]) - 1
    return number if number >= 0 and event < collections[number][1] else None


def _between(marks: Sequence[int], since: int, until: int) -> int:
    return bisect_right(marks, until) - bisect_right(marks, since)


def _most_at_once(waits: Sequence[tuple[int, int, int]]) -> int:
    changes = [(since, nbytes) for since, _, nbytes in waits] + [(until, -nbytes) for _, until, nbytes in waits]
    return max(accumulate(change for _, change in sorted(changes)))
