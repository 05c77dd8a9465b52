"""What a line keeps now and then, in too few turns for the births to tell a leak from a cache that fills.

A copy of the weights that each tenth step keeps, the predictions that each epoch keeps: a short run has three or four
of them. Such a line is told apart from its look-alikes by this alone: all that it made is still there. Knows nothing
of torch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection

from torchmemlint.immutable import immutable
from torchmemlint.runtime.growth import WARM_UP
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.ledger import ALIVE, Ledger, Site

FEWEST_TIMES = 3
"""Times that a line must have kept something: less is a set-up, or what the program has two of."""
_SHARE = 0.01
"""The share of a device's peak that a line must keep to be worth a word."""
_OWN = (Kind.PARAMETER, Kind.GRADIENT, Kind.OPTIMIZER_STATE, Kind.INPUT)
"""What a program has more and more of until it has all of it, and batches that a set-up makes."""


@immutable()
class Seldom:
    """A line that kept `nbytes` each time on average, in so many of the `steps` of a run, and freed none of it."""

    line: Site
    nbytes: float
    times: int
    steps: int


def find_seldom(ledger: Ledger, device: str, end: int, told: Collection[Site]) -> list[Seldom]:
    """The lines of which that is true on a device until the event `end`; lines that were `told` of are left out."""
    steps = [mark for mark in ledger.steps if mark <= end]
    if len(steps) <= WARM_UP + FEWEST_TIMES:
        return []
    kept: dict[Site, dict[int, int]] = {}
    gone: set[Site] = set()
    for index in range(len(ledger)):
        born, site = ledger.born(index), ledger.site(index)
        if ledger.device(index) != device or site in told or not steps[WARM_UP - 1] <= born < end:
            continue
        if ledger.died(index) == ALIVE or ledger.died(index) >= end:
            turn = bisect_right(steps, born)
            by_turn = kept.setdefault(site, {})
            by_turn[turn] = by_turn.get(turn, 0) + (0 if ledger.kind(index) in _OWN else ledger.nbytes(index))
        elif _outlives_its_turn(ledger, index, steps):
            gone.add(site)
    found = [
        Seldom(site, sum(by_turn.values()) / len(by_turn), len(by_turn), len(steps))
        for site, by_turn in kept.items()
        if site not in gone and _goes_on(sorted(by_turn), len(steps))
    ]
    worth = _SHARE * ledger.peaks.get(device, 0)
    return sorted((one for one in found if one.nbytes >= worth), key=lambda one: -one.nbytes)


def _outlives_its_turn(ledger: Ledger, index: int, steps: list[int]) -> bool:
    """Whether a storage that is gone was there when a step ended: what replaces it replaces what the line keeps."""
    return bisect_right(steps, ledger.born(index)) < bisect_right(steps, ledger.died(index))


def _goes_on(turns: list[int], steps: int) -> bool:
    """Whether it happened all over a run: in its first half, and in its last third."""
    return len(turns) >= FEWEST_TIMES and 2 * turns[0] <= steps and 3 * turns[-1] >= 2 * steps
