"""One pass of a loop, such as an evaluation over its batches: what it piles up until it ends.

Knows nothing of torch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from torchmemlint.immutable import immutable
from torchmemlint.runtime.holders import Look
from torchmemlint.runtime.ledger import ALIVE, Ledger

_UNUSED = 0.9
"""The share of what graphs keep that no backward may have used."""


@immutable()
class Pass:
    """One time that a loop was gone through, with a look taken when it was left and its locals still lived."""

    series: str
    began: int
    marks: Sequence[int]  # the ends of its turns
    look: Look
    by_library: bool = False  # a library goes through a loader: what it collects is not the program's own doing


def died_unused(ledger: Ledger, records: Iterable[int]) -> list[int]:
    """Those that no backward freed: what a graph keeps for a backward goes, as it runs, when it has been used."""
    spans = sorted(ledger.backwards)
    return [index for index in records if not _freed_in(spans, ledger.died(index))]


def unused(ledger: Ledger, records: Sequence[int]) -> bool:
    """Whether nearly all of what graphs keep was in vain."""
    total = sum(map(ledger.nbytes, records))
    return sum(map(ledger.nbytes, died_unused(ledger, records))) >= _UNUSED * total


def _freed_in(spans: Sequence[tuple[int, int]], died: int) -> bool:
    if died == ALIVE:
        return False
    place = bisect_right(spans, died, key=lambda span: span[0]) - 1
    return place >= 0 and died < spans[place][1]
