"""The search for leaks among what was written down, with what looks found. Knows nothing of torch."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from torchmemlint.runtime.growth import WARM_UP
from torchmemlint.runtime.holders import Holder, Look
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.leaks import Leak, merged
from torchmemlint.runtime.ledger import ALIVE, Ledger, Site
from torchmemlint.runtime.passes import Pass, died_unused, unused
from torchmemlint.runtime.survivors import (
    Accrual,
    accrual,
    best,
    eligible_series,
    in_window,
    swelling,
    turns_of,
    whole,
    within,
)
from torchmemlint.runtime.uses import is_sampled, is_used_afterwards

_STEPS = ("step", "optimizer")
_STAYED = 0.9
"""The share of what a look found growing that must still be there at the last turn."""


def find_leaks(
    ledger: Ledger,
    device: str,
    looks: Iterable[Look],
    block: int = 1,
    passes: Iterable[Pass] = (),
    end: int | None = None,
) -> list[Leak]:
    """What grows on a device; most first. `looks` are the last ones taken at each place, `block` the allocator's.

    `passes` are loops that were entered and left, `end` is the event at which the measurement ended.
    """
    return _Search(ledger, device, looks, block, ledger.now if end is None else end).leaks(passes)


class _Search:
    """Goes from the last look to the first; what one explains is not asked again."""

    def __init__(self, ledger: Ledger, device: str, looks: Iterable[Look], block: int, end: int) -> None:
        self._ledger = ledger
        self._device = device
        self._series = whole(ledger, eligible_series(ledger))
        self._looks = sorted(
            (look for look in looks if look.device == device), key=lambda look: look.event, reverse=True
        )
        self._block = block
        self._end = end
        self._spans = {series: sorted(spans) for series, spans in ledger.passes.items()}
        self._stepped = sorted(
            mark for series, marks in ledger.marks.items() if series.startswith(_STEPS) for mark in marks
        )
        self._explained: set[int] = set()
        self._by_graph = {index for look in self._looks for index in look.by_graph}
        self._told: set[int] = set()  # the records of leaks

    def leaks(self, passes: Iterable[Pass]) -> list[Leak]:
        """All of them."""
        found: list[Leak] = []
        for look in self._looks:
            by_holder: dict[int, list[int]] = {}
            for index, place in look.holder_of.items():
                if index not in self._explained:
                    by_holder.setdefault(place, []).append(index)
            for place, records in sorted(by_holder.items()):
                leak = self._of_holder(look.holders[place], records, look.event)
                self._explained.update(records)
                if leak is not None:
                    found.append(leak)
                    self._told.update(records)
        found.extend(self._of_lines())
        lines = {leak.line for leak in found}
        for leak in itertools.chain.from_iterable(map(self._of_pass, passes)):
            if leak.line not in lines:
                found.append(leak)
                lines.add(leak.line)  # the next pass of a trainer, over a loader of its own, has the same to tell
        threads = {look.event: look.thread for look in self._looks}
        return sorted(merged(found, threads), key=lambda leak: (not leak.is_growth, -self._per_event(leak)))

    def _per_event(self, leak: Leak) -> float:
        """Bytes by event, so that leaks whose turns differ can be compared."""
        marks = self._ledger.marks[leak.growth.series]
        return leak.bytes_per_turn * len(marks) / (marks[-1] - marks[0] + 1)

    def _of_holder(self, holder: Holder, records: Sequence[int], event: int) -> Leak | None:
        found = self._accrued(records, event)
        if found is not None and not self._goes_on(records, found.series):
            return None
        if found is None:
            found = self._swollen(holder, records, event)
        if found is None:
            return None
        marks = self._until(self._series[found.series], event)
        turns = set(turns_of((self._ledger.born(index) for index in records), marks))
        bounded = holder.bound is not None and len(turns) <= holder.bound and not _is_lost(holder)
        leak = self._leak(found, holder, records, event, bounded=bounded)
        leak = replace(leak, gathered=self._is_gathered(holder, records, found.series))
        elsewhere = [index for index in records if not self._within(found.series, index)]
        besides = self._accrued(elsewhere, event) if elsewhere else None
        return leak if besides is None else replace(leak, besides=(besides,))

    def _is_gathered(self, holder: Holder, records: Sequence[int], series: str) -> bool:
        """Whether a holder collects what is used later: tensors themselves, neither graphs nor parts of storages."""
        return 2 * min(holder.direct, holder.shown) >= holder.nbytes and self._is_used_later(records, series)

    def _is_used_later(self, records: Sequence[int], series: str) -> bool:
        """Whether what piles up along a series is sampled while it goes on, or used when it is over."""
        marks = self._ledger.marks[series]
        kept = [index for index in records if in_window(self._ledger.born(index), marks)]
        if is_sampled(self._ledger, kept, marks):
            return True
        trains = self._has_steps(marks[0], marks[-1])  # what it collects grows with the training, whatever it is for
        return not trains and is_used_afterwards(self._ledger, kept, marks, self._end)

    def _of_pass(self, one: Pass) -> Iterator[Leak]:
        """What one pass of a loop piles up in graphs that no backward ever uses, and that goes with the pass.

        What is held directly until then is there on purpose: the outputs of an evaluation, for its metric. It counts
        as gathered: its bytes are there at the pass's end.
        """
        if one.look.device != self._device:
            return
        by_holder: dict[int, list[int]] = {}
        for index, place in one.look.holder_of.items():
            if one.marks and one.began <= self._ledger.born(index) < one.marks[-1]:
                by_holder.setdefault(place, []).append(index)
        for place, records in by_holder.items():
            saved = [index for index in records if index in one.look.by_graph]
            going = [index for index in died_unused(self._ledger, saved) if index not in self._told]
            in_vain = self._sum(one, going) is not None and unused(self._ledger, saved)
            collected = not in_vain and not self._told.intersection(records)
            if not in_vain and not collected:
                continue
            found = self._sum(one, records) or (self._swollen_in(one, records) if collected else None)
            if found is not None:
                counted = [index for index in records if in_window(self._ledger.born(index), one.marks)]
                leak = self._leak(found, one.look.holders[place], counted or records, one.look.event)
                yield replace(
                    leak,
                    gathered=collected,
                    stays=self._staying(one, records),
                    retained=sum(map(self._ledger.nbytes, records)),
                )

    def _staying(self, one: Pass, records: Sequence[int]) -> float | None:
        """The bytes of a turn that do not go after the pass; None where nothing goes, and the pass is a library's."""
        if one.by_library and all(self._lives_at(index, self._end) for index in records):
            return None
        staying = self._sum(one, [index for index in records if index in self._told])
        return 0.0 if staying is None else staying.bytes_per_turn

    def _sum(self, one: Pass, records: Iterable[int]) -> Accrual | None:
        births = [(self._ledger.born(index), self._ledger.nbytes(index)) for index in records]
        return accrual(one.series, one.marks, births)

    def _lives_at(self, index: int, event: int) -> bool:
        return self._ledger.died(index) == ALIVE or self._ledger.died(index) >= event

    def _within(self, series: str, index: int) -> bool:
        """Whether a record was made in a turn of a series; what is made between two entries of a loop is not."""
        return within(self._spans.get(series), self._ledger.born(index))

    def _is_beside(self, series: str) -> bool:
        """Whether a series is one evaluation beside a training: no optimizer steps while it goes on."""
        marks = self._ledger.marks[series]
        return bool(self._stepped) and not self._has_steps(marks[0], marks[-1])

    def _leaves_by(self, series: str) -> int:
        """The event up to which what grows along a series must stay.

        In the turns of a training it is the last turn, as the program may end just after. What one evaluation piles
        up must outlive it: until the loop around it is left, or to the end.
        """
        marks = self._ledger.marks[series]
        if not self._is_beside(series):
            return marks[-1]
        around = (
            ended
            for other, spans in self._spans.items()
            for began, ended in spans
            if other != series and began < marks[0] and marks[-1] < ended and self._has_steps(began, ended)
        )
        return min(around, default=self._end)

    def _has_steps(self, began: int, ended: int) -> bool:
        place = bisect_left(self._stepped, began)
        return place < len(self._stepped) and self._stepped[place] <= ended

    def _is_for_a_metric(self, series: str, records: Sequence[int]) -> bool:
        """Whether one evaluation may have collected records on purpose: outputs, and no graphs behind them."""
        graph = sum(self._ledger.nbytes(index) for index in records if index in self._by_graph)
        return self._is_beside(series) and 2 * graph < sum(map(self._ledger.nbytes, records))

    def _of_lines(self) -> Iterator[Leak]:
        """What no holder was found for, line by line."""
        reached = {index for look in self._looks for index in look.holder_of}
        looked = max((look.event for look in self._looks), default=0)
        by_line: dict[Site, list[int]] = {}
        end = max((marks[-1] for marks in self._series.values()), default=0)
        for index in self._ledger.alive_at(end, self._device):
            if index not in reached and (self._ledger.born(index) < looked or not self._looks):
                by_line.setdefault(self._ledger.site(index), []).append(index)
        for records in by_line.values():
            found = self._accrued(records, min(looked or end, end))
            if found is not None:
                used = not self._looks and self._is_used_later(records, found.series)  # else none has a name
                yield replace(self._leak(found, None, records, end), gathered=used)

    # --- growth of records

    @staticmethod
    def _until(marks: Sequence[int], event: int) -> list[int]:
        return [mark for mark in marks if mark <= event]

    def _accrued(self, records: Sequence[int], event: int) -> Accrual | None:
        """The growth of records that live at an event, in the series that shows it best."""
        ledger = self._ledger

        def said() -> Iterator[Accrual | None]:
            for series, all_marks in self._series.items():
                marks = self._until(all_marks, event)
                if len(marks) <= WARM_UP:
                    continue
                survivors = [
                    index for index in records if ledger.born(index) < marks[-1] and self._within(series, index)
                ]
                if self._is_for_a_metric(series, survivors):
                    continue
                if self._stayed(survivors, self._leaves_by(series), marks):
                    yield accrual(series, marks, [(ledger.born(index), ledger.nbytes(index)) for index in survivors])

        return best(said())

    def _stayed(self, records: Sequence[int], end: int, marks: Sequence[int]) -> bool:
        ledger = self._ledger
        grown = [index for index in records if ledger.born(index) >= marks[WARM_UP - 1]]
        total = sum(ledger.nbytes(index) for index in grown)
        left = sum(ledger.nbytes(index) for index in grown if self._lives_at(index, end))
        return left >= _STAYED * total

    def _goes_on(self, records: Sequence[int], series: str) -> bool:
        """Whether the lines that made records still add to what stays, up to the last turn."""
        ledger, marks = self._ledger, self._series[series]
        sites = {ledger.site(index) for index in records}
        survivors = [
            index
            for index in ledger.alive_at(marks[-1], self._device)
            if ledger.site(index) in sites and self._within(series, index)
        ]
        return accrual(series, marks, [(ledger.born(index), ledger.nbytes(index)) for index in survivors]) is not None

    def _swollen(self, holder: Holder, records: Sequence[int], event: int) -> Accrual | None:
        """The growth of a value that is made larger and larger from itself: `seen = torch.cat([seen, new])`."""
        if not holder.carried or not holder.direct:
            return None
        sites = {self._ledger.site(index) for index in records}
        for series, marks in self._series.items():
            held = self._held(sites, self._until(marks, event))
            if held and held[-1] > holder.direct:
                continue  # others have storages of these lines, too
            found = swelling(series, marks, held)
            if found is not None and swelling(series, marks, self._held(sites, marks)) is not None:
                return found
        return None

    def _swollen_in(self, one: Pass, records: Sequence[int]) -> Accrual | None:
        """The same in a pass of a library, whose source is not read: `kept = torch.cat([kept, new])`."""
        held = self._held({self._ledger.site(index) for index in records}, one.marks)
        if not held or held[-1] > 2 * sum(map(self._ledger.nbytes, records)):
            return None
        return swelling(one.series, one.marks, held)

    def _held(self, sites: set[Site], marks: Sequence[int]) -> list[int]:
        """The bytes that lines hold at marks."""
        ledger = self._ledger
        return list(
            itertools.accumulate(
                sum(nbytes for index, nbytes in since if ledger.site(index) in sites)
                for since in ledger.changes_between(marks, self._device)
            )
        )

    def _leak(
        self, found: Accrual, holder: Holder | None, records: Sequence[int], event: int, *, bounded: bool = False
    ) -> Leak:
        ledger = self._ledger
        marks = self._until(self._ledger.marks[found.series], event)
        made: Counter[Site] = Counter()
        kinds: Counter[Kind] = Counter()
        blocks = 0
        inside = [index for index in records if self._within(found.series, index)]
        for index in [one for one in inside if in_window(ledger.born(one), marks)] or records:
            made[ledger.site(index)] += ledger.nbytes(index)
            kinds[ledger.kind(index)] += ledger.nbytes(index)
            blocks += -(-ledger.nbytes(index) // self._block) * self._block
        total = made.total()
        share = found.bytes_per_turn / total if total else 0.0
        return Leak(
            found,
            holder,
            tuple((site, nbytes * share) for site, nbytes in made.most_common()),
            tuple(kinds.most_common()),
            sum(map(ledger.nbytes, records)),
            blocks * share if self._block > 1 else None,
            bounded,
            look=event,
        )


def _is_lost(cache: Holder) -> bool:
    """Whether what a cache holds can mostly not be found again: its bound counts entries that nothing asks for."""
    return 2 * cache.unfindable > (cache.length or 0)
