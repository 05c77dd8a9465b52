"""`track_memory`: what a piece of a program does to memory.

with track_memory() as memory:
    train(model, loader)
print(memory.peak, memory.growth_per_step, memory.by_line()[:3])
"""

from __future__ import annotations

import contextlib
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from torchmemlint.immutable import immutable
from torchmemlint.runtime import backends
from torchmemlint.runtime.backends import HOST
from torchmemlint.runtime.collector import Waiting, find_waiting
from torchmemlint.runtime.curve import highest
from torchmemlint.runtime.evidence import Watch
from torchmemlint.runtime.failures import Failures
from torchmemlint.runtime.growth import FEWEST, WARM_UP, Growth, growth, growth_by_line
from torchmemlint.runtime.holders import Holder, Look
from torchmemlint.runtime.idle import Idle, find_idle
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.leak_search import find_leaks
from torchmemlint.runtime.leaks import Leak
from torchmemlint.runtime.ledger import Ledger, Record, Site
from torchmemlint.runtime.lookout import Lookout
from torchmemlint.runtime.passes import Pass
from torchmemlint.runtime.retention import look
from torchmemlint.runtime.seldom import Seldom, find_seldom
from torchmemlint.runtime.steps import OnStep

_WORTH_ON_HOST = 1024
"""Bytes per turn that a program which uses a GPU must keep on the host to be told: a number of each step is a log."""


@immutable()
class LineUse:
    """The bytes that one line of source holds at a moment, in so many storages."""

    site: Site
    nbytes: int
    storages: int


@immutable()
class Moment:
    """The bytes alive after so many events, by kind; `step` counts the steps that had ended."""

    event: int
    step: int
    by_kind: dict[Kind, int]

    @property
    def nbytes(self) -> int:
        """All of them."""
        return sum(self.by_kind.values())


class MemoryUse:
    """What was measured; also while the measurement is still running. Bytes unless said otherwise.

    Every question is about one device: the accelerator if the program used one, else the host, unless named.
    """

    def __init__(self, backend: backends.Backend, watch: Watch) -> None:
        self.backend = backend
        self._watch = watch
        self._ended: int | None = None
        self._lookout = Lookout()
        self._looks: dict[Hashable, Look] = {}  # by the thread and the place
        self._heavy: dict[Hashable, Look] = {}
        self._cycles: dict[int, Holder] = {}

    @property
    def ledger(self) -> Ledger:
        """Every storage, and every event."""
        return self.backend.ledger

    @property
    def device(self) -> str:
        """The device the figures are about."""
        return self.backend.device()

    @property
    def peak(self) -> int:
        """The most bytes allocated at once, above those at the start, by the backend's account."""
        return self.backend.peak_allocated(self.device)

    @property
    def peak_reserved(self) -> int | None:
        """The most bytes the allocator took from the device; None for the host."""
        return self.backend.peak_reserved(self.device)

    @property
    def live(self) -> int:
        """The bytes of the tensors that are alive now, or were at the end of the measurement."""
        return self.live_on(self.device)

    def live_on(self, device: str) -> int:
        """The same of a device."""
        if self._ended is None:
            return self.ledger.live.get(device, 0)
        return self.ledger.live_at([self._ended], device)[0]

    @property
    def has_ended(self) -> bool:
        """Whether the measurement is over."""
        return self._ended is not None

    def end(self) -> None:
        """Note that the measurement ends here: what is freed from now on does not belong to it."""
        self._ended = self.ledger.now

    def step(self) -> None:
        """Mark the end of a step by hand, where neither an optimizer nor a loader tells it."""
        self.ledger.mark("step")

    @property
    def steps(self) -> int:
        """The steps that ended."""
        return len(self.ledger.steps)

    @property
    def growth(self) -> Growth:
        """How the bytes held at the ends of steps grow."""
        return growth(self.ledger.live_at(self.ledger.steps, self.device))

    @property
    def growth_per_step(self) -> float:
        """Bytes by which the memory held grows with each step; 0.0 where it does not grow in a line."""
        return self.growth.certain_bytes

    def growth_by_line(self) -> dict[Site, Growth]:
        """The lines whose bytes grow in a line from step to step; most first."""
        found = growth_by_line(self.ledger, self.ledger.steps, self.device)
        return dict(sorted(found.items(), key=lambda one: -one[1].bytes_per_step))

    def by_line(self, at: str | int = "peak", device: str | None = None) -> list[LineUse]:
        """What lived at a moment (`peak`, `end`, or a number of events), by the line that made it; most first."""
        ledger = self.ledger
        total: Counter[Site] = Counter()
        storages: Counter[Site] = Counter()
        for index in ledger.alive_at(self._event(at, device), device or self.device):
            site = ledger.site(index)
            total[site] += ledger.nbytes(index)
            storages[site] += 1
        return [LineUse(site, nbytes, storages[site]) for site, nbytes in total.most_common() if nbytes]

    def by_kind(self, at: str | int = "peak", device: str | None = None) -> dict[Kind, int]:
        """What lived at a moment, by what it was for."""
        self._settle()
        return dict(sorted(self.ledger.bytes_by_kind(self._event(at, device), device or self.device).items()))

    def retained_by(self) -> Look:
        """Who holds what outlived the step that made it; without steps, all that was made. Ask while it lives.

        Leaves out what the first step made: gradients, optimizer state.
        """
        return look(self.backend.tracker, self.device, self._watch.hooked, self.ledger.steps, outlived=True)

    def look_out(self, series: str) -> None:
        """At the end of a turn: look who holds what, if it is time to (see `Lookout`)."""
        if self._ended is not None:
            return
        marks, place = self.ledger.marks[series], self.backend.tracker.sites.place(2)
        turns = len(marks)
        if self._lookout.is_time(place, turns):
            self.look_now(series)
        elif turns > WARM_UP and self._lookout.is_heavy(self.ledger.left_since(marks[-2], self.device)):
            self._heavy[place] = self.look_aside(series)

    def look_now(self, series: str) -> Look:
        """Look who holds what, for `leaks`; `series` tells the turns. Where it has few, the steps tell them."""
        found = self.look_aside(series)
        self._looks[found.thread, self.backend.tracker.sites.place(2)] = found
        return found

    def look_aside(self, series: str) -> Look:
        """The same, for something else than `leaks`."""
        marks = self.ledger.marks.get(series, [])
        if len(marks) <= WARM_UP + FEWEST:
            marks = max((marks, *self.ledger.marks.values()), key=len) if marks else marks
        found = look(self.backend.tracker, self.device, self._watch.hooked, marks)
        self._cycles |= {
            index: found.holders[place]
            for index, place in found.holder_of.items()
            if found.holders[place].kind == "cycle"
        }
        return found

    @property
    def looks(self) -> list[Look]:
        """The last looks taken, one for each place of the program and each thread that is there."""
        return list(self._looks.values())

    @property
    def waiting(self) -> list[Waiting]:
        """What waited for the garbage collector, most first; its cycle is told where looks were taken."""
        self._settle()
        marks = max(self.ledger.marks.values(), key=len, default=[])
        return find_waiting(self.ledger, self.device, marks, self._cycles, self._event("end"))

    def idle(self, loops: Mapping[str, Sequence[tuple[int, int]]], told: Collection[str] = ()) -> list[Idle]:
        """What lived at a peak and was not used any more: at the run's, and at those of loops, by series.

        What holders keep that have been `told` of, by name, is left out.
        """
        self._settle()
        looks = [*self._looks.values(), *self._heavy.values()]
        return find_idle(self.ledger, self.device, loops, looks, self._event("end"), told)

    @property
    def leaks(self) -> list[Leak]:
        """What grows from turn to turn, most first, with its holder where looks were taken."""
        return self.leaks_with(())

    def leaks_with(self, passes: Iterable[Pass]) -> list[Leak]:
        """Also those that loops pile up each time that they are gone through."""
        self._settle()
        first, others = self.device, [one for one in self.backend.devices() if one != self.device]
        found = self._leaks_on(first, passes)
        for device in others:
            known = {leak.line for leak in found}
            found += (leak for leak in self._leaks_on(device, passes) if leak.line not in known)
        if first != HOST:
            known = {leak.line for leak in found}
            on_host = (leak for leak in self._leaks_on(HOST, passes) if leak.line not in known)
            worth = (leak for leak in on_host if leak.is_growth and leak.bytes_per_turn >= _WORTH_ON_HOST)
            found += (replace(leak, on_host=True) for leak in worth)
        return found

    @property
    def seldom(self) -> list[Seldom]:
        """What lines keep too seldom to tell whether it is a leak; what `leaks` has is not in it."""
        self._settle()
        told = {site for leak in self.leaks for site in (leak.line, *(site for site, _ in leak.made))}
        return find_seldom(self.ledger, self.device, self._event("end"), told)

    def _leaks_on(self, device: str, passes: Iterable[Pass]) -> list[Leak]:
        block = self.backend.block_size(device)
        return find_leaks(self.ledger, device, self._looks.values(), block, passes, self._ended)

    def records(self, at: str | int = "peak", device: str | None = None) -> list[Record]:
        """The storages that lived at a moment."""
        self._settle()
        event = self._event(at, device)
        return list(self.ledger.records(self.ledger.alive_at(event, device or self.device)))

    @property
    def timeline(self) -> list[Moment]:
        """The bytes alive by kind, after every event of the device; of a long run, the highest of every few events."""
        self._settle()
        steps = self.ledger.steps
        return [
            Moment(event, bisect_right(steps, event - 1), dict(by_kind))
            for event, by_kind in highest(self.ledger, self.device, end=self._event("end"))
        ]

    def _settle(self) -> None:
        if self._ended is None:
            self._watch.settle()

    def _event(self, at: str | int, device: str | None = None) -> int:
        match at:
            case int():
                return at
            case "end":
                return self.ledger.now if self._ended is None else self._ended
            case "peak":
                return self.ledger.peak_events.get(device or self.device, 0)
        raise ValueError(f"`at` is 'peak', 'end' or a number of events, not {at!r}")


@contextlib.contextmanager
def track_memory(
    backend: str = "auto",
    *,
    fake: bool = False,
    card: str | None = None,
    memory: int | None = None,
    devices: int | None = None,
    on_step: OnStep | None = None,
    holders: bool = False,
) -> Iterator[MemoryUse]:
    """Measure what happens inside: `with track_memory() as memory`.

    `backend` is `cuda`, `cpu`, `simulated` or `auto` (`cuda` where there is a GPU, else `simulated`). `card` names the
    GPU to simulate, `memory` its bytes if not its own, `devices` says how many there are of it; with `fake` its
    operations are not computed, so that large models fit. `on_step` is called at the end of each optimizer step and
    loader batch. With `holders`, it is looked now and then who holds what, so that `leaks` can name them. Raises
    RuntimeError for `cuda` without a GPU, ValueError for other names.
    """
    chosen = backends.choose(backend, fake=fake, card=card, memory=memory, devices=devices)
    with Watch(chosen.tracker, on_step) as watch, chosen.running():
        use = MemoryUse(chosen, watch)
        if holders:
            chosen.ledger.on_mark.append(use.look_out)
        try:
            yield use
        finally:
            with chosen.ledger.failures.noted():
                watch.settle()
            use.end()
            _warn_of(chosen.ledger.failures)


def _warn_of(failures: Failures) -> None:
    """Say that looks failed, also where warnings are errors: these would replace what the program raised itself."""
    if failures.count:
        with contextlib.suppress(RuntimeWarning):
            text = f"what looks at the program failed {failures.count} times, bytes may be missing: {failures.first}"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
