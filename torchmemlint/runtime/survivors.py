"""Which bytes pile up from turn to turn: told from when the storages that are still alive were made.

A leak leaves survivors from every turn; a bounded queue, a list that is cleared now and then, or the last batch leave
them from the last turns only; a cache that is warm, lazily made state and whatever belongs to the set-up leave them
from the first ones only. So the births of what is alive tell a leak from its look-alikes, without a fit and without a
threshold in bytes. Knows nothing of torch.
"""

from __future__ import annotations

import itertools
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from torchmemlint.immutable import immutable
from torchmemlint.runtime.growth import FEWEST, WARM_UP, growth
from torchmemlint.runtime.ledger import STEP_FAMILIES, Ledger

_MARGIN = 1
"""Turns left out at the end: what the last one made may still be in use."""
_USUAL = 0.75
"""The share of turns that must add the same bytes for these to be the bytes per turn; else it is the mean."""


@immutable()
class Accrual:
    """Bytes that every turn of a series adds and that stay; `regularity` is the share of turns that add some."""

    series: str
    bytes_per_turn: float
    storages_per_turn: float
    turns: int
    regularity: float
    steady: bool  # most turns add the very same bytes, and these are most of it
    nbytes: int = 0  # what is left of all those turns


def turns_of(births: Iterable[int], marks: Sequence[int]) -> list[int]:
    """For each birth (an event) the number of turns that had ended."""
    return [bisect_right(marks, born) for born in births]


def _window(marks: Sequence[int]) -> tuple[int, int]:
    """The first and the last turn that count; turn k lies between the marks k - 1 and k."""
    return WARM_UP, len(marks) - 1 - _MARGIN


def in_window(born: int, marks: Sequence[int]) -> bool:
    """Whether a birth falls into the turns by which growth is told."""
    first, last = _window(marks)
    return first <= bisect_right(marks, born) <= last


def within(spans: Sequence[tuple[int, int]] | None, born: int) -> bool:
    """Whether a birth lies in one of some spans of events, which are in order; None: the whole run."""
    if spans is None:
        return True
    place = bisect_right(spans, born, key=lambda span: span[0]) - 1
    return place >= 0 and born < spans[place][1]


def accrual(series: str, marks: Sequence[int], survivors: Sequence[tuple[int, int]]) -> Accrual | None:
    """What survivors (each: the event of its birth, its bytes), alive at the last mark, say; None: no growth."""
    first, last = _window(marks)
    window = last - first + 1
    if window < FEWEST:
        return None
    nbytes: Counter[int] = Counter()
    storages: Counter[int] = Counter()
    for born, size in survivors:
        turn = bisect_right(marks, born)
        if first <= turn <= last and size:
            nbytes[turn] += size
            storages[turn] += 1
    added = sorted(nbytes)
    if len(added) < FEWEST or not _spread(added, first, last) or not _goes_on(nbytes, first, last):
        return None
    usual, times = Counter(nbytes.values()).most_common(1)[0]
    steady = times >= _USUAL * window and 2 * usual * times >= nbytes.total()
    return Accrual(
        series,
        usual if steady else nbytes.total() / window,
        Counter(storages.values()).most_common(1)[0][0] if steady else storages.total() / window,
        window,
        len(added) / window,
        steady,
        nbytes.total(),
    )


def _spread(added: Sequence[int], first: int, last: int) -> bool:
    """Whether the turns that added something lie all over the window, with no long gap, at its ends neither."""
    gaps = [second - one for one, second in itertools.pairwise(added)]
    longest = max(2 * statistics.median(gaps), (last - first + 1) // 4)
    return max(*gaps, added[0] - first + 1, last - added[-1] + 1) <= longest


def _goes_on(nbytes: Counter[int], first: int, last: int) -> bool:
    """Whether the second half adds about as much as the first: what fills up adds less and less."""
    middle = (first + last + 1) / 2
    early = sum(size for turn, size in nbytes.items() if turn < middle)
    return 2 * (nbytes.total() - early) >= early


def swelling(series: str, marks: Sequence[int], held: Sequence[int]) -> Accrual | None:
    """The growth of bytes that are held at each mark, for storages that are replaced by larger ones."""
    found = growth(held)
    rising = [second - one for one, second in itertools.pairwise(held[WARM_UP:])]
    if not found.certain or found.fit < 0.98 or min(rising, default=0) <= 0:
        return None
    return Accrual(series, found.bytes_per_step, 0.0, found.steps, 1.0, len(set(rising)) == 1)


def eligible_series(ledger: Ledger) -> dict[str, list[int]]:
    """The series in whose turns growth may be told; the program's own steps come first.

    A loop of a program that has optimizer steps or batches counts where it turns while these go on: what a loop
    before them piles up is a data set or a model. Where there is nothing but loops, the outermost counts that turns
    often enough, and what goes on within its turns.
    """
    enough = {series: marks for series, marks in ledger.marks.items() if len(marks) >= WARM_UP + FEWEST + _MARGIN}
    told = [series for series in enough if _family(series) != "loop"]
    told.sort(key=lambda series: (STEP_FAMILIES.index(_family(series)), -len(enough[series])))
    loops = [series for series in enough if _family(series) == "loop"]
    if not told:
        told = _main_loop({series: enough[series] for series in loops})
    within = [
        series for series in loops if series not in told and any(_overlap(enough[series], enough[one]) for one in told)
    ]
    within.sort(key=lambda series: len(enough[series]))
    return {series: enough[series] for series in (*told, *within)}


def whole(ledger: Ledger, series: dict[str, list[int]]) -> dict[str, list[int]]:
    """Those that are not just one entry of a loop that was entered again: a loader, or an optimizer, of one epoch."""
    loops = {one: sorted(spans) for one, spans in ledger.passes.items() if len(spans) > 1 and one in series}

    def is_part(marks: Sequence[int]) -> bool:
        return any(
            began <= marks[0] and marks[-1] <= ended and len(marks) <= _between(ledger.marks[loop], began, ended) + 1
            for loop, spans in loops.items()
            for began, ended in spans
        )

    return {one: marks for one, marks in series.items() if _family(one) == "loop" or not is_part(marks)}


def _between(marks: Sequence[int], began: int, ended: int) -> int:
    return bisect_right(marks, ended) - bisect_left(marks, began)


def _family(series: str) -> str:
    family = series.partition(" ")[0]
    return family if family in STEP_FAMILIES else STEP_FAMILIES[0]


def _overlap(one: Sequence[int], other: Sequence[int]) -> bool:
    return one[0] < other[-1] and other[0] < one[-1]


def _main_loop(loops: dict[str, list[int]]) -> list[str]:
    """The loop in which most happens; of those that go on at the same time, the outermost: it turns least."""
    if not loops:
        return []
    widest = max(loops, key=lambda series: loops[series][-1] - loops[series][0])
    beside = [one for one in loops if one != widest and _overlap(loops[one], loops[widest])]
    return [min([widest, *beside], key=lambda one: len(loops[one]))]  # where nothing happens, none overlaps itself


def best(found: Iterable[Accrual | None]) -> Accrual | None:
    """Of what several series say, in their order: the first that is exact, then the first that is regular.

    Where another says the same with many more turns (the loop over the batches, where each epoch makes a new loader),
    that one. A series that sees less than half of the bytes (those of a loop in which little is kept of what another
    loop piles up) is not asked.
    """
    said = [one for one in found if one is not None]
    most = max((one.nbytes for one in said), default=0)
    said = [one for one in said if 2 * one.nbytes >= most]
    for one in (*(one for one in said if one.steady), *said):
        if one.regularity > 0.9:
            alike = [other for other in said if other.steady and other.bytes_per_turn == one.bytes_per_turn]
            longest = max(alike, key=lambda other: other.turns, default=one)
            return longest if longest.turns > 1.5 * one.turns else one
    return max(said, key=lambda one: one.regularity, default=None)
