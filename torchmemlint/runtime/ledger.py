"""What was allocated and freed, in order, as columns: small enough for millions of storages. Knows nothing of torch.

A *record* is one storage from its making to its freeing (a resized storage gets a new record); an *event* is one
of these two moments. Times are counted in events, so that two runs of a deterministic program can be compared.
"""

from __future__ import annotations

import itertools
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from torchmemlint.immutable import immutable
from torchmemlint.runtime.failures import Failures
from torchmemlint.runtime.kinds import Kind

ALIVE = -1
STEP_FAMILIES = ("step", "optimizer", "loader", "backward", "call", "loop")
"""What a series of marks may be called: one of these words, a blank, and what tells it from others of its kind."""


@immutable()
class Site:
    """A line of source."""

    path: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


NOWHERE = Site("?", 0, "?")


@immutable()
class Record:
    """One storage: its bytes, where and when it was made and freed (in events, `ALIVE` while it lives)."""

    index: int
    nbytes: int
    device: str
    site: Site
    operation: str
    in_backward: bool
    kind: Kind
    born: int
    died: int
    step: int


class _Names:
    """Values written once and referred to by number."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self._numbers: dict[object, int] = {}

    def number(self, value: object) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


class Ledger:
    """The records and events of one run."""

    def __init__(self) -> None:
        self._nbytes = array("q")
        self._device = array("i")
        self._site = array("i")
        self._operation = array("i")
        self._backward = array("b")
        self._kind = array("b")
        self._born = array("q")
        self._died = array("q")
        self._used = array("q")  # the events that there were when an operation was last given it
        self._events = array("q")  # record * 2, plus one where it is freed
        self._devices, self._sites, self._operations = _Names(), _Names(), _Names()
        self.marks: dict[str, list[int]] = {}
        self.passes: dict[str, list[tuple[int, int]]] = {}  # of loops: from the entry to the end, in events
        self.collections: list[tuple[int, int]] = []  # of the garbage collector: from the first it freed to the last
        self.backwards: list[tuple[int, int]] = []  # the events at which each backward began and ended
        self._all_marks = array("q")
        self._saved: set[tuple[int, int]] = set()  # sites and operations of which something was saved for backward
        self.shared: set[int] = set()  # records of a GPU that went to another process, or came from one
        self.live: dict[str, int] = {}
        self.peaks: dict[str, int] = {}
        self.peak_events: dict[str, int] = {}
        self.on_mark: list[Callable[[str], None]] = []
        self.failures = Failures()  # of all that observes this run

    def __len__(self) -> int:
        return len(self._nbytes)

    @property
    def now(self) -> int:
        """The number of events so far."""
        return len(self._events)

    @property
    def devices(self) -> list[str]:
        """The devices that held a storage, in order of first use."""
        return [str(one) for one in self._devices.values]

    def allocate(self, nbytes: int, device: str, site: Site, operation: str, in_backward: bool) -> int:
        """Write down a new storage and give its record's number."""
        index = len(self._nbytes)
        self._nbytes.append(nbytes)
        self._device.append(self._devices.number(device))
        self._site.append(self._sites.number(site))
        self._operation.append(self._operations.number(operation))
        self._backward.append(in_backward)
        self._kind.append(Kind.OTHER)
        self._born.append(len(self._events))
        self._died.append(ALIVE)
        self._used.append(len(self._events))
        self._events.append(index * 2)
        live = self.live[device] = self.live.get(device, 0) + nbytes
        if live > self.peaks.get(device, 0):
            self.peaks[device] = live
            self.peak_events[device] = len(self._events)
        return index

    def free(self, index: int) -> None:
        """Write down that a storage is gone."""
        self._died[index] = len(self._events)
        self._events.append(index * 2 + 1)
        self.live[self.device(index)] -= self._nbytes[index]

    def use(self, index: int) -> None:
        """Write down that an operation is given a storage, or makes a view of it its result."""
        self._used[index] = len(self._events)

    def mark(self, series: str) -> None:
        """Write down that something which happens again and again (a step, a batch, a loop's turn) happened here."""
        self.marks.setdefault(series, []).append(len(self._events))
        self._all_marks.append(len(self._events))
        self.failures.tell(self.on_mark, series)

    @property
    def footprint(self) -> int:
        """The bytes that the columns take on the heap."""
        columns = (self._nbytes, self._device, self._site, self._operation, self._backward, self._kind)
        return sum(map(sys.getsizeof, (*columns, self._born, self._died, self._used, self._events)))

    @property
    def steps(self) -> list[int]:
        """The events at which the program's steps ended: the marks of `step_series`."""
        series = self.step_series
        return [] if series is None else self.marks[series]

    @property
    def step_series(self) -> str | None:
        """The most telling series of marks; None where nothing happens again and again.

        What the user marked comes first, then the optimizer that steps most often (of two alike, the one that
        began), then the loader that gives most batches.
        """
        for family in STEP_FAMILIES:
            found = [series for series in self.marks if series.partition(" ")[0] == family]
            if found:
                return max(found, key=lambda series: len(self.marks[series]))
        return None

    def claim(self, index: int, kind: Kind) -> bool:
        """Note evidence for a storage's kind; stronger evidence stays. Whether it was news."""
        if kind is Kind.SAVED:
            self._saved.add((self._site[index], self._operation[index]))
        news: bool = kind < self._kind[index]
        if news:
            self._kind[index] = kind
        return news

    def claimed(self, index: int) -> Kind:
        """What a storage was noted to be for."""
        return Kind(self._kind[index])

    def device(self, index: int) -> str:
        """The device of a record."""
        return str(self._devices.values[self._device[index]])

    def nbytes(self, index: int) -> int:
        """The bytes of a record."""
        return self._nbytes[index]

    def born(self, index: int) -> int:
        """The event at which a record begins."""
        return self._born[index]

    def died(self, index: int) -> int:
        """The event at which a record ended, `ALIVE` while it lives."""
        return self._died[index]

    def used(self, index: int) -> int:
        """The number of events when an operation last took a record as an argument; when it was made, if none did."""
        return self._used[index]

    def began_operation(self, event: int) -> int:
        """The number of events when the operation began that made the last of so many events."""
        last = self._events[event - 1] >> 1
        while event and not (code := self._events[event - 1]) & 1 and self._is_like(code >> 1, last):
            event -= 1
        return event

    def _is_like(self, index: int, other: int) -> bool:
        return self._operation[index] == self._operation[other] and self._site[index] == self._site[other]

    def site(self, index: int) -> Site:
        """The line that made a record."""
        site = self._sites.values[self._site[index]]
        assert isinstance(site, Site)
        return site

    def kind(self, index: int) -> Kind:
        """What a storage was for: by its evidence, else by whether it outlived the step (or batch) that made it.

        What outlived it without a backward ever asking for it is saved for one all the same where the same operation
        at the same line saves at other times: that is what a graph holds which nobody differentiates.
        """
        claimed = Kind(self._kind[index])
        if claimed is not Kind.OTHER:
            return claimed
        died = self._died[index]
        after = bisect_right(self._all_marks, self._born[index])
        if died != ALIVE and (after == len(self._all_marks) or died <= self._all_marks[after]):
            return Kind.TEMPORARY
        return Kind.SAVED if (self._site[index], self._operation[index]) in self._saved else Kind.OTHER

    def records(self, indices: Iterable[int]) -> Iterator[Record]:
        """Records, whole."""
        steps = self.steps
        for index in indices:
            yield Record(
                index,
                self._nbytes[index],
                self.device(index),
                self.site(index),
                str(self._operations.values[self._operation[index]]),
                bool(self._backward[index]),
                self.kind(index),
                self._born[index],
                self._died[index],
                bisect_right(steps, self._born[index]),
            )

    def alive_at(self, event: int, device: str | None = None) -> list[int]:
        """The records that lived after so many events."""
        wanted = None if device is None else self._devices.number(device)
        return [
            index
            for index in range(len(self._nbytes))
            if self._born[index] < event
            and (self._died[index] == ALIVE or self._died[index] >= event)
            and (wanted is None or self._device[index] == wanted)
        ]

    def left_since(self, event: int, device: str) -> int:
        """The living bytes that were made since an event, without what belongs to the model and its optimizer."""
        wanted = self._devices.number(device)
        return sum(
            self._nbytes[index]
            for index in range(bisect_left(self._born, event), len(self._nbytes))
            if self._died[index] == ALIVE and self._device[index] == wanted and self._kind[index] >= Kind.INPUT
        )

    def changes(self, device: str, block: int = 1) -> Iterator[tuple[int, int, int]]:
        """Every event of a device: its number, its record, and its bytes (negative where it is freed).

        With `block`, a storage's bytes are those of the whole blocks that an allocator gives for them.
        """
        wanted = self._devices.number(device)
        for event, code in enumerate(self._events):
            index = code >> 1
            if self._device[index] == wanted:
                nbytes = -(-self._nbytes[index] // block) * block
                yield event, index, -nbytes if code & 1 else nbytes

    def changes_between(self, events: Iterable[int], device: str, block: int = 1) -> Iterator[list[tuple[int, int]]]:
        """For each of so many events, which must be given in order: what changed since the one before.

        A change is a record and its bytes, as `changes` gives them.
        """
        changes = self.changes(device, block)
        change = next(changes, None)
        for wanted in events:
            since: list[tuple[int, int]] = []
            while change is not None and change[0] < wanted:
                since.append(change[1:])
                change = next(changes, None)
            yield since

    def live_at(self, events: Sequence[int], device: str, block: int = 1) -> list[int]:
        """The bytes that lived on a device after each of so many events, which must be given in order."""
        totals = (sum(nbytes for _, nbytes in since) for since in self.changes_between(events, device, block))
        return list(itertools.accumulate(totals))

    def live_by_site_at(self, events: Sequence[int], device: str, block: int = 1) -> dict[Site, list[int]]:
        """The bytes that lived after each of so many events (in order), by the line that made them."""
        series: dict[Site, list[int]] = {}
        now: Counter[Site] = Counter()
        for place, since in enumerate(self.changes_between(events, device, block)):
            for index, nbytes in since:
                now[self.site(index)] += nbytes
            for site, nbytes in now.items():
                series.setdefault(site, [0] * len(events))[place] = nbytes
        return series

    def bytes_by_kind(self, event: int, device: str) -> Counter[Kind]:
        """The bytes alive after so many events, by what they were for."""
        counted: Counter[Kind] = Counter()
        for index in self.alive_at(event, device):
            counted[self.kind(index)] += self._nbytes[index]
        return counted
