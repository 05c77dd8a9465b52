"""What a run did, from what was written down while it went on."""

from __future__ import annotations

import itertools
import platform
import statistics
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from torchmemlint.runtime.curve import curve
from torchmemlint.runtime.demands import NO_DEMANDS
from torchmemlint.runtime.growth import NO_GROWTH, growth, growth_by_line
from torchmemlint.runtime.guard import OTHERS, TIME
from torchmemlint.runtime.ledger import Ledger, Site
from torchmemlint.runtime.loops import FAMILIES
from torchmemlint.runtime.moments import peaks_within
from torchmemlint.runtime.process import WITH_OTHERS
from torchmemlint.runtime.results import (
    DeviceUse,
    End,
    LineBytes,
    LineGrowth,
    LoopResult,
    RunResult,
    SeriesGrowth,
)
from torchmemlint.runtime.sites import HERE, TORCH

if TYPE_CHECKING:
    from torchmemlint.runtime.backends import Backend
    from torchmemlint.runtime.memory import MemoryUse
    from torchmemlint.runtime.script import Run

_LINES = 50  # lines at the peak that are told
_FEWEST_TURNS = 4


def outcome(run: Run) -> RunResult:
    """The result of a run that has ended."""
    return _Outcome(run).result()


class _Outcome:
    def __init__(self, run: Run) -> None:
        self.run = run

    def result(self) -> RunResult:
        end = End.FINISHED
        error, told, out_of_memory = None, "", None
        if self.run.loops.stopped is not None:
            end = {TIME: End.TIME, OTHERS: End.KILLED}.get(self.run.loops.stopped, End.STOPPED)
            error = WITH_OTHERS if end is End.KILLED else None
        elif self.run.error is not None:
            end = End.FAILED
            error = _one_line(self.run.error)
            told = _traceback(self.run.error)
            if isinstance(self.run.error, torch.cuda.OutOfMemoryError):
                out_of_memory = self._asked_in_vain(self.run.error)
        return RunResult(
            end=end,
            error=error,
            traceback=told,
            out_of_memory=out_of_memory,
            exit_code=self.run.exit_code,
            torch=torch.__version__,
            python=platform.python_version(),
            threads=torch.get_num_threads(),
            seed=self.run.order.seed,
            tracked=self.run.order.tracked,
            seconds=time.monotonic() - self.run.started,
            seconds_per_step=self._seconds_per_step(),
            series=self._series(),
            steps=self.run.loops.counts.get(self._series(), 0),
            host_growth=growth(self.run.heaps.get(self._series(), [])) if self.run.heaps else NO_GROWTH,
            host_measured=bool(self.run.heaps),
            loops=tuple(self._loop_results()),
            cut_passes=self.run.loops.cut_passes,
            reached={f"{path}:{row}": count for (path, row), count in self.run.instrumented.reached.items()},
            files=tuple(self.run.instrumented.read),
            left_out=dict(self.run.aside.counts),
            analysis=self._analysis(),  # its own failures are counted, too
            failed_looks=self.run.failures.count,
            failed_look=self.run.failures.first,
            demands=self.run.observer.demands(self.run.aside.made) if self.run.observer is not None else NO_DEMANDS,
            rank=self.run.order.rank,
            ended=time.time(),
            **self._measured(),
        )

    def _analysis(self) -> dict[str, Any]:
        with self.run.failures.noted():
            return {} if self.run.analysis is None else self.run.analysis.result()
        return {}

    def _asked_in_vain(self, error: BaseException) -> str:
        """The innermost line of the user's on the way to an error."""
        frames, place = error.__traceback__, ""
        while frames is not None:
            code = frames.tb_frame.f_code
            if self.run.backend is None or self.run.backend.tracker.sites.is_users(code):
                place = f"{code.co_filename}:{frames.tb_lineno}"
            frames = frames.tb_next
        return place

    def _series(self) -> str:
        """The steps that are counted: those of the busiest optimizer, else loader, else what stands in."""
        counts = self.run.loops.counts
        for family in FAMILIES:
            found = [series for series in counts if series.startswith(family)]
            if found:
                return max(found, key=lambda series: counts[series])
        return ""

    def _seconds_per_step(self) -> float | None:
        times = self.run.times.get(self._series(), [])[1:]
        between = [after - before for before, after in itertools.pairwise(times)]
        return statistics.median(between) if between else None

    def _measured(self) -> dict[str, Any]:
        memory, backend = self.run.memory, self.run.backend
        if memory is None or backend is None:
            return {"backend": self.run.order.backend, "description": "without the tracker"}
        ledger, device = memory.ledger, memory.device
        steps = ledger.marks.get(self._series(), [])
        spans = list(itertools.pairwise([0, *steps]))
        return {
            "backend": backend.name,
            "description": backend.describe(),
            "card": backend.card_name,
            "capacity": backend.capacity(device),
            "device": device,
            "peak": memory.peak,
            "peak_reserved": memory.peak_reserved,
            "allocator": backend.allocator_use(device),
            "live_at_end": memory.live,
            "step_peaks": tuple(peaks_within(ledger, spans, device, self._block)),
            "step_live": tuple(ledger.live_at(steps, device, self._block)),
            "growth": tuple(self._growth(ledger, device)),
            "devices": tuple(self._devices(backend, memory)),
            "curve": curve(ledger, device, steps),
            "growing_lines": tuple(self._growing_lines(ledger, device)),
            "kinds": {kind.label: nbytes for kind, nbytes in memory.by_kind().items() if nbytes},
            "lines": tuple(
                LineBytes(use.site.path, use.site.line, use.site.function, use.nbytes, use.storages)
                for use in memory.by_line()[:_LINES]
            ),
        }

    def _devices(self, backend: Backend, memory: MemoryUse) -> Iterator[DeviceUse]:
        """Each of several accelerators; nothing where there is one, which the rest of the result is about."""
        used = backend.devices()
        for device in used if len(used) > 1 else ():
            yield DeviceUse(
                device,
                backend.peak_allocated(device),
                backend.peak_reserved(device),
                memory.live_on(device),
                tuple(self._growth(memory.ledger, device)),
            )

    def _loop_results(self) -> Iterator[LoopResult]:
        ends = self.run.instrumented.loop_ends
        loops = list(self.run.loops.loops.values())
        peaks: list[int | None] = [None] * len(loops)
        if self.run.memory is not None:
            spans = [(entry.began, entry.ended) for loop in loops if (entry := loop.longest) is not None]
            found = iter(peaks_within(self.run.memory.ledger, spans, self.run.memory.device, self._block))
            peaks = [next(found) if loop.longest is not None else None for loop in loops]
        for loop, peak in zip(loops, peaks, strict=True):
            stepping = loop.longest is not None and bool(loop.longest.steps)
            end = ends.get((loop.path, loop.line), loop.line)
            yield LoopResult(loop.path, loop.line, end, loop.entries, loop.turns, loop.cuts, stepping, peak)

    @property
    def _block(self) -> int:
        """Bytes of the allocator's blocks: a scalar that is kept costs a whole one."""
        memory = self.run.memory
        return 1 if memory is None else memory.backend.block_size(memory.device)

    @staticmethod
    def _marks(ledger: Ledger) -> dict[str, list[int]]:
        """The series of steps; loops are told by their entries."""
        return {series: marks for series, marks in ledger.marks.items() if not series.startswith("loop ")}

    def _growing_lines(self, ledger: Ledger, device: str) -> Iterator[LineGrowth]:
        """Of each line the steepest growth there is, along the steps and the loops with steps inside."""
        series: dict[str, Sequence[int]] = {**self._marks(ledger)}
        for loop in self.run.loops.loops.values():
            entry = loop.longest
            if entry is not None and entry.turns >= _FEWEST_TURNS and not entry.within_a_step:
                series[loop.series] = entry.moments
        steepest: dict[Site, LineGrowth] = {}
        for name, marks in series.items():
            for site, held in growth_by_line(ledger, marks, device, self._block).items():
                known = steepest.get(site)
                if known is None or held.bytes_per_step > known.growth.bytes_per_step:
                    steepest[site] = LineGrowth(site.path, site.line, site.function, name, held)
        yield from sorted(steepest.values(), key=lambda one: -one.growth.bytes_per_step)

    def _growth(self, ledger: Ledger, device: str) -> Iterator[SeriesGrowth]:
        for series, marks in self._marks(ledger).items():
            yield SeriesGrowth(series, growth(ledger.live_at(marks, device, self._block)))
        entries = [loop.longest for loop in self.run.loops.loops.values() if loop.longest is not None]
        for entry in entries:
            if entry.turns >= _FEWEST_TURNS:
                held = growth(ledger.live_at(entry.moments, device, self._block))
                yield SeriesGrowth(entry.loop.series, held, entry.within_a_step, bool(entry.steps))


def _one_line(error: BaseException) -> str:
    text = traceback.format_exception_only(type(error), error)[-1].strip()
    return " ".join(text.split())[:500]


def _traceback(error: BaseException) -> str:
    """Without our own frames, and without what torch does between them for an operation."""
    told = traceback.TracebackException(type(error), error, error.__traceback__)
    frames = list(told.stack)
    last = max((place for place, frame in enumerate(frames) if not _is_below(frame)), default=-1)
    operation = next((place for place in range(last + 1, len(frames)) if _is_ours(frames[place])), len(frames))
    kept = [frame for frame in frames[:operation] if not _is_ours(frame)]
    told.stack = traceback.StackSummary.from_list(kept)
    return "".join(told.format())


def _is_below(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith((HERE, TORCH))


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(HERE)
