"""When storages were last used: what tells a collection from a leak, and idle bytes from those that work.

A use is an operation that takes a tensor of the storage as an argument, also in a backward. Knows nothing of torch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from torchmemlint.immutable import immutable
from torchmemlint.runtime.ledger import Ledger, Site

_AFTERWARDS = 0.5
"""The share of bytes that must be used when the turns are over."""
_SAMPLED = 0.2
"""The share of bytes that must be used in a later turn, where some are used long after."""
_LONG = 0.5
"""Of all turns, the share that must lie between the making of one and its use: no window of a few turns has it."""


def ages(ledger: Ledger, records: Sequence[int], marks: Sequence[int]) -> list[int]:
    """For each record the turns that ended between its making and its last use."""
    return [bisect_right(marks, ledger.used(index) - 1) - bisect_right(marks, ledger.born(index)) for index in records]


def in_spans(spans: Sequence[tuple[int, int]], event: int) -> bool:
    """Whether an event lies in one of some spans, both ends included."""
    return any(began <= event <= ended for began, ended in reversed(spans))


def is_used_afterwards(ledger: Ledger, records: Sequence[int], marks: Sequence[int], end: int) -> bool:
    """Whether most of what piles up is used when the turns are over: it was collected for that.

    `marks` are the ends of the turns, `end` is the event at which the measurement ended.
    """
    afterwards = [index for index in records if marks[-1] < ledger.used(index) <= end]
    total = sum(map(ledger.nbytes, records))
    return total > 0 and sum(map(ledger.nbytes, afterwards)) >= _AFTERWARDS * total


def is_sampled(ledger: Ledger, records: Sequence[int], marks: Sequence[int]) -> bool:
    """Whether what piles up is used in later turns, and some of it long after, as a replay memory is.

    A log that is printed every few turns is not, nor what every turn goes through from the first to the last.
    """
    by_age = list(zip(records, ages(ledger, records, marks), strict=True))
    used = [index for index, age in by_age if age > 0 and ledger.used(index) <= marks[-1]]
    total = sum(map(ledger.nbytes, records))
    oldest = max(ages(ledger, used, marks), default=0)
    lately = [index for index in used if len(marks) > 1 and ledger.used(index) > marks[-2]]
    if 2 * sum(map(ledger.nbytes, lately)) > total:
        return False
    return total > 0 and sum(map(ledger.nbytes, used)) >= _SAMPLED * total and oldest >= _LONG * len(marks)


@immutable()
class Unneeded:
    """Bytes that one backward kept and made for gradients that no optimizer uses.

    `saved` are the bytes that the graph keeps for them, by line, most first; `parameters` so many parameters get
    `gradients` bytes of them.
    """

    saved: tuple[tuple[Site, int], ...]
    gradients: int
    parameters: int

    @property
    def nbytes(self) -> int:
        """All of them."""
        return self.gradients + sum(nbytes for _, nbytes in self.saved)
