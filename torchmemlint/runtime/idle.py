"""What lives at a peak and is never used again: a result that the step before left bound, a graph without a backward.

Two things have to be true of such a storage: no operation takes it from the peak on, and it is seen to go, or has not
been used for many steps. What lives to the end of a short run may still have its use. Knows nothing of torch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from torchmemlint.immutable import immutable
from torchmemlint.runtime.growth import FEWEST
from torchmemlint.runtime.holders import Holder, Look
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.ledger import ALIVE, Ledger, Site

_SHARE = 0.1
"""The share of a peak that must lie idle to be worth a word."""
_PART = 0.02
"""The share of a peak that a line must hold of it."""
Span = tuple[int, int]


@immutable()
class IdlePart:
    """Idle bytes of one holder; where none is known, of one line. `made` are the lines that allocated them."""

    holder: Holder | None
    made: tuple[tuple[Site, int], ...]
    nbytes: int
    storages: int
    kind: Kind  # of most of the bytes

    @property
    def line(self) -> Site:
        """Where the holder is filled; else the line that allocates most."""
        return self.holder.filled[0] if self.holder is not None and self.holder.filled else self.made[0][0]


@immutable()
class Idle:
    """The idle bytes at one peak: of the run, or of the passes of a loop. `peak` is all that lived then."""

    series: str | None  # the loop's; None: the run's own peak
    event: int
    peak: int
    nbytes: int
    parts: tuple[IdlePart, ...]


def find_idle(
    ledger: Ledger,
    device: str,
    loops: Mapping[str, Sequence[Span]],
    looks: Iterable[Look],
    end: int,
    told: Collection[str] = (),
) -> list[Idle]:
    """What is idle at the peak of a device, and at those of loops (by series: when each was gone through).

    `end` is the event at which the measurement ended; what the holders of the names `told` keep is left out.
    """
    events, held = [0], [0]
    for event, _, change in ledger.changes(device):
        if event >= end:
            break
        events.append(event + 1)
        held.append(held[-1] + change)
    if len(events) == 1:
        return []
    search = _Search(ledger, device, [look for look in looks if look.device == device], end, told)
    found: list[Idle] = []
    whole = max(range(len(held)), key=held.__getitem__)
    around = [span for spans in loops.values() for span in spans if span[0] < events[whole] <= span[1]]
    inner = max(around, default=None)
    run = search.at(None, events[whole], held[whole], inner, steps=ledger.steps)
    if run is not None:
        found.append(run)
    for series, spans in loops.items():
        best: tuple[int, int, Span] | None = None
        for span in spans:
            first, last = bisect_left(events, span[0]), bisect_right(events, span[1])
            if first < last:
                place = max(range(first, last), key=held.__getitem__)
                if best is None or held[place] > held[best[0]]:
                    best = place, events[place], span
        if best is not None and best[0] != whole and best[2] != inner:
            one = search.at(series, best[1], held[best[0]], best[2], steps=())
            if one is not None and all(not _is_same(one, other) for other in found):
                found.append(one)
    return found


def _is_same(one: Idle, other: Idle) -> bool:
    """Whether two peaks have the same to tell: those of a loop, and of the loop around it."""
    return one.event == other.event or {part.line for part in one.parts} <= {part.line for part in other.parts}


class _Search:
    def __init__(self, ledger: Ledger, device: str, looks: Sequence[Look], end: int, told: Collection[str]) -> None:
        self._ledger = ledger
        self._device = device
        self._looks = looks
        self._end = end
        self._told = told

    def at(self, series: str | None, event: int, peak: int, span: Span | None, steps: Sequence[int]) -> Idle | None:
        """What is idle at an event. It is seen to go within a span; or `steps` go by without a use of it."""
        ledger = self._ledger
        began = ledger.began_operation(event)
        records = [
            index
            for index in ledger.alive_at(event, self._device)
            if ledger.used(index) < began and self._is_idle(index, span, steps) and not self._is_told(index)
        ]
        nbytes = sum(map(self._ledger.nbytes, records))
        if nbytes < _SHARE * peak:
            return None
        parts = [part for part in self._parts(records) if part.nbytes >= _PART * peak]
        return Idle(series, event, peak, nbytes, tuple(parts)) if parts else None

    def _is_told(self, index: int) -> bool:
        holder = self._holder(index) if self._told else None
        return holder is not None and holder.name in self._told

    def _is_idle(self, index: int, span: Span | None, steps: Sequence[int]) -> bool:
        ledger = self._ledger
        used, died = ledger.used(index), ledger.died(index)
        if span is not None and died != ALIVE and died < min(span[1], self._end):
            return ledger.kind(index) is not Kind.PARAMETER
        until = self._end if died == ALIVE else died
        return bisect_left(steps, until) - bisect_left(steps, used) > FEWEST and used < (steps[-1] if steps else 0)

    def _parts(self, records: Sequence[int]) -> list[IdlePart]:
        groups: dict[object, tuple[Holder | None, list[int]]] = {}
        for index in records:
            holder = self._holder(index)
            key: object = self._ledger.site(index) if holder is None else (holder.name, holder.kind, holder.site.path)
            groups.setdefault(key, (holder, []))[1].append(index)
        parts = []
        for holder, indices in groups.values():
            made: Counter[Site] = Counter()
            kinds: Counter[Kind] = Counter()
            for index in indices:
                made[self._ledger.site(index)] += self._ledger.nbytes(index)
                kinds[self._ledger.kind(index)] += self._ledger.nbytes(index)
            parts.append(
                IdlePart(
                    holder, tuple(made.most_common()), made.total(), len(indices), max(kinds, key=kinds.__getitem__)
                )
            )
        return sorted(parts, key=lambda part: -part.nbytes)

    def _holder(self, index: int) -> Holder | None:
        for look in self._looks:
            place = look.holder_of.get(index)
            if place is not None:
                return look.holders[place]
        return None
