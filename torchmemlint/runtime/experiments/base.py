"""What an experiment is, and how one is run."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch

from torchmemlint.immutable import immutable
from torchmemlint.runtime.experiments.outcome import Effect, Figures, Outcome
from torchmemlint.runtime.growth import growth
from torchmemlint.runtime.host import heap_bytes
from torchmemlint.runtime.memory import MemoryUse, track_memory

HOST_STEPS = 80
"""Steps over which the host's heap is watched: it is noisier than the device's memory, which is counted."""


@immutable()
class Size:
    """How large an experiment is: features, layers, examples in a batch, and steps."""

    width: int = 256
    depth: int = 6
    batch: int = 512
    steps: int = 12


@immutable()
class Experiment:
    """One program with a switch: `program(bench)` is the bad variant, and the good one where `bench.good`."""

    code: str
    title: str
    effect: Effect
    program: Callable[[Bench], object]
    size: Size
    note: str = ""


@dataclass(slots=True)
class Bench:
    """What a variant is given: its size, where to run, which variant to be, and turns that are counted."""

    size: Size
    device: torch.device
    good: bool
    seconds: list[float] = field(default_factory=list)
    memory: MemoryUse | None = None
    heap: list[float] | None = None
    segments: int | None = None
    worker_bytes: int | None = None

    def turns(self, steps: int | None = None) -> Iterator[int]:
        """The steps of the program's loop; each is timed, and marked where memory is measured."""
        for turn in range(self.size.steps if steps is None else steps):
            began = time.perf_counter()
            yield turn
            if self.device.type == "cuda" and self.memory is None:
                torch.cuda.synchronize()
            self.seconds.append(time.perf_counter() - began)
            if self.memory is not None:
                self.memory.step()
            if self.heap is not None:
                self.heap.append(heap_bytes() or 0)


def measure(experiment: Experiment, backend: str = "auto", size: Size | None = None) -> Outcome:
    """Run both variants of an experiment on a backend: once for memory, once more for time where that is real.

    The simulation's own time says nothing about a GPU's and is left out. Raises what `track_memory` raises.
    """
    sized = experiment if size is None else replace(experiment, size=size)
    described, bad = _variant(sized, backend, good=False)
    _, good = _variant(sized, backend, good=True)
    return Outcome(sized.code, sized.title, sized.effect, described, bad, good, sized.note)


def _variant(experiment: Experiment, backend: str, *, good: bool) -> tuple[str, Figures]:
    memory, bench = _watched(experiment, backend, good)
    name = memory.backend.name
    timed = None
    if name != "simulated":
        timed = Bench(experiment.size, _device(name), good)
        _seeded(experiment, timed)
    figures = Figures(
        peak=memory.peak,
        peak_reserved=memory.peak_reserved,
        growth_per_step=memory.growth_per_step,
        host_peak=memory.ledger.peaks.get("cpu", 0),
        host_growth_per_step=_host_growth(experiment, good, name) if experiment.effect is Effect.HOST_GROWTH else None,
        segments_per_step=bench.segments / max(1, experiment.size.steps) if bench.segments is not None else None,
        seconds_per_step=statistics.median(timed.seconds[1:]) if timed is not None and timed.seconds[1:] else None,
        worker_bytes=bench.worker_bytes,
    )
    return memory.backend.describe(), figures


def _watched(experiment: Experiment, backend: str, good: bool) -> tuple[MemoryUse, Bench]:
    gc.collect()
    with track_memory(backend) as memory:
        bench = Bench(experiment.size, _device(memory.backend.name), good, memory=memory)
        before = _segments(bench.device)
        _seeded(experiment, bench)
        if before is not None:
            bench.segments = (_segments(bench.device) or 0) - before
    return memory, bench


def _host_growth(experiment: Experiment, good: bool, backend: str) -> float | None:
    """Bytes per step by which the heap grows, without the tracker; None where the C library does not tell."""
    if heap_bytes() is None:
        return None
    long = replace(experiment.size, steps=HOST_STEPS)
    # What lies on the host is the same wherever the tensors are, so a simulated device is not needed for it.
    bench = Bench(long, _device("cuda" if backend == "cuda" else "cpu"), good, heap=[])
    _seeded(experiment, bench)
    assert bench.heap is not None
    return growth(bench.heap, warm_up=HOST_STEPS // 2).bytes_per_step


def _segments(device: torch.device) -> int | None:
    """How often the allocator has asked the driver for memory; None for the host."""
    if device.type != "cuda":
        return None
    asked: int = torch.cuda.memory_stats().get("segment.all.allocated", 0)
    return asked


def _device(backend: str) -> torch.device:
    return torch.device("cpu" if backend == "cpu" else "cuda")


def _seeded(experiment: Experiment, bench: Bench) -> None:
    torch.manual_seed(0)
    kept = experiment.program(bench)
    del kept
    gc.collect()
