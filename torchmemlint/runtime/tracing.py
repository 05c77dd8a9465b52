"""The child's side of `torchmemlint trace`: looks who holds what while the program runs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from types import FrameType
from typing import TYPE_CHECKING, Any

from torch import nn

from torchmemlint.runtime.growth import FEWEST, WARM_UP
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.leaks import Leak
from torchmemlint.runtime.ledger import Ledger
from torchmemlint.runtime.loops import Entry, StopRun
from torchmemlint.runtime.passes import Pass
from torchmemlint.runtime.shared import shared_by_line
from torchmemlint.runtime.trace_report import Timeline, idle_to_json, leak_to_json, unneeded_to_json, waiting_to_json
from torchmemlint.runtime.unneeded import UnneededGradients

if TYPE_CHECKING:
    from torchmemlint.runtime.script import Run

_CALL = nn.Module._call_impl.__code__
_SAMPLES = 120
"""Moments of the timeline that are told at most."""


def analysis(run: Run) -> LeakAnalysis:
    """For `Order.analysis`."""
    return LeakAnalysis(run)


class LeakAnalysis:
    """Marks the turns of loops in the ledger, and has the measurement look who holds what now and then.

    A loop is looked at for the last time when it is left and its locals still live: every outermost one, and of
    those within others the first, the second, the fourth and so on.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._left: Counter[str] = Counter()
        self._passes: dict[str, tuple[Entry, Pass]] = {}
        self._library_passes: dict[str, Pass] = {}  # by series: the last one that was looked at
        self._loops: dict[str, Entry] = {}  # by series: the longest entry of a loop whose turns stand by themselves
        self._unneeded: UnneededGradients | None = None
        if run.ledger is not None:
            run.ledger.on_mark.append(self._marked)
        if run.watch is not None:
            self._unneeded = UnneededGradients(run.watch.tracker, run.steps, run.watch.hooked)
            run.steps.after_pass.append(self._passed)

    def _marked(self, series: str) -> None:
        if self._run.memory is not None:
            self._run.memory.look_out(series)

    def turn(self, entry: Entry) -> None:
        """A turn begins: the one before has ended. Threads in one loop go through its turns together."""
        if self._run.memory is not None and entry.leads:
            self._run.memory.ledger.mark(entry.loop.series)

    def leave(self, entry: Entry) -> None:
        """The loop is left."""
        memory, series = self._run.memory, entry.loop.series
        if memory is None or memory.has_ended:
            return
        memory.ledger.passes.setdefault(series, []).append((entry.began, memory.ledger.now))
        if series not in self._loops or entry.turns > self._loops[series].turns:
            self._loops[series] = entry
        if max(entry.turns, entry.had) <= WARM_UP + FEWEST or (entry.around is not None and entry.turns <= WARM_UP):
            return
        inside = _in_a_module()
        if inside and entry.around is not None:
            return  # the locals of a forward keep nothing from turn to turn
        self._left[series] += 1
        count = self._left[series]
        if entry.around is None or count & (count - 1) == 0:
            found = memory.look_now(series)
            stopped = isinstance(sys.exc_info()[1], StopRun)  # a backward after the loop may never come
            if entry.turns > WARM_UP + FEWEST and not stopped and not inside:
                marks = [*entry.moments[1 : entry.turns], found.event]
                self._passes[series] = entry, Pass(series, entry.began, marks, found)

    def _passed(self, series: str, batches: int) -> None:
        """A loader's pass is over. Where a library goes through it, its frames still have what it collected."""
        memory = self._run.memory
        if memory is None or memory.has_ended or batches <= WARM_UP + FEWEST + 1 or self._is_the_projects():
            return
        marks = memory.ledger.marks.get(series, [])[-batches:]
        self._left[series] += 1
        count = self._left[series]
        if count & (count - 1) == 0 and len(marks) == batches:
            self._library_passes[series] = Pass(series, marks[0], marks, memory.look_aside(series), by_library=True)

    def _is_the_projects(self) -> bool:
        """Whether the code that asked a loader for its next batch is the project's."""
        sites = None if self._run.memory is None else self._run.memory.backend.tracker.sites
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").startswith("torchmemlint."):
            frame = frame.f_back
        return frame is None or sites is None or sites.is_users(frame.f_code)

    @property
    def passes(self) -> list[Pass]:
        """The last pass that was looked at of each loop in which bytes do not grow by nature."""
        own = [one for entry, one in self._passes.values() if self._stands_by_itself(entry)]
        return [*own, *self._library_passes.values()]

    def _stands_by_itself(self, entry: Entry) -> bool:
        ledger = self._run.ledger
        return ledger is None or not _has_steps(ledger) or _is_pass(entry) or _differentiates(entry, ledger)

    def _spans(self, ledger: Ledger) -> dict[str, list[tuple[int, int]]]:
        """When each loop was gone through whose turns stand by themselves."""
        return {series: ledger.passes[series] for series, entry in self._loops.items() if self._stands_by_itself(entry)}

    def result(self) -> dict[str, Any]:
        """Leaks, kinds over time, and what the looks could not tell."""
        memory = self._run.memory
        if memory is None:
            return {}
        last = max(memory.looks, key=lambda look: look.event, default=None)
        leaks = memory.leaks_with(self.passes)
        waiting = memory.waiting
        told = {one.holder for one in leaks} | {one.cycle for one in waiting}
        idle = memory.idle(self._spans(memory.ledger), {one.name for one in told if one is not None})
        unneeded = None if self._unneeded is None else self._unneeded.found
        return {
            "leaks": [leak_to_json(leak) for leak in leaks],
            "waiting": [waiting_to_json(one) for one in waiting],
            "idle": [idle_to_json(one) for one in idle],
            "seldom": [asdict(one) for one in memory.seldom],
            "shared": [asdict(one) for one in shared_by_line(memory.ledger)],
            "unneeded": None if unneeded is None else unneeded_to_json(unneeded),
            "timeline": _timeline(memory.ledger, memory.device, leaks).to_json(),
            "looks": len(memory.looks),
            "cut": any(look.cut for look in memory.looks),
            "unreached": 0 if last is None else last.unreached,
        }


def _has_steps(ledger: Ledger) -> bool:
    """Whether anything but loops tells of steps; without them each loop of the program stands by itself."""
    return bool(ledger.backwards) or any(not series.startswith("loop ") for series in ledger.marks)


def _is_pass(entry: Entry) -> bool:
    """Whether each turn of a loop stands by itself: a batch, an epoch; neither a layer nor a moment of a sequence.

    A loop without steps counts where it does what a loop over batches does: beside such loops, or as the outermost.
    """
    return bool(entry.steps) or entry.around is None or (bool(entry.around.steps) and not entry.within_a_step)


def _differentiates(entry: Entry, ledger: Ledger) -> bool:
    """Whether turns of a loop have backwards of their own: an adaptation, an attack."""
    ended = ledger.now if entry.ended is None else entry.ended
    within = sum(entry.began <= began and end <= ended for began, end in ledger.backwards)
    return entry.turns > 0 and within >= entry.turns - 1


def _in_a_module() -> bool:
    """Whether a module's call runs now: a model's own loops are over layers, or over time."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _CALL:
            return True
        frame = frame.f_back
    return False


def _timeline(ledger: Ledger, device: str, leaks: Iterable[Leak]) -> Timeline:
    """The bytes of each kind at the ends of steps, and of the turns in which something grows.

    Where nothing steps, at even distances.
    """
    told = [*([] if ledger.step_series is None else [ledger.step_series]), *(leak.growth.series for leak in leaks)]
    series = tuple(dict.fromkeys(told))
    marks = sorted({mark for one in series for mark in ledger.marks[one]})
    marks = marks or list(range(0, ledger.now, max(1, ledger.now // _SAMPLES)))
    every = -(-len(marks) // _SAMPLES) or 1
    moments = marks[every - 1 :: every]
    by_kind: Counter[Kind] = Counter()
    held: dict[Kind, list[int]] = {kind: [] for kind in Kind}
    for since in ledger.changes_between(moments, device):
        for index, nbytes in since:
            by_kind[ledger.kind(index)] += nbytes
        for kind, values in held.items():
            values.append(by_kind[kind])
    return Timeline(len(marks), series, {kind.label: tuple(values) for kind, values in held.items() if any(values)})
