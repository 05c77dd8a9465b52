"""What a run gives back, as plain data that goes through JSON unchanged. Knows nothing of torch.

Bytes and seconds unless said otherwise. Whether figures are measured or simulated is told by `backend`.
"""

from __future__ import annotations

import enum
import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.measured import SIMULATED
from torchmemlint.runtime.allocator_history import AllocatorUse
from torchmemlint.runtime.curve import NO_CURVE, Curve
from torchmemlint.runtime.demands import NO_DEMANDS, Demands
from torchmemlint.runtime.growth import NO_GROWTH, Growth


class End(enum.Enum):
    """How a run ended."""

    FINISHED = "finished"  # by itself; loops in it may have been cut
    STOPPED = "stopped"  # by the budget of steps for the whole run
    TIME = "time"  # by the limit of wall time
    FAILED = "failed"  # by an exception, or an exit code of its own that is not 0
    KILLED = "killed"  # from without: it did not end in time, or the process died


@immutable()
class SeriesGrowth:
    """How the bytes held grow along something that happens again and again.

    `series` is `optimizer 1`, `loader 2`, or `loop path:line`. `inside` is true for loops that lie within a step, in
    which bytes grow by nature; `stepping` is false for loops without steps, in which they may (a loop that makes the
    layers of a model).
    """

    series: str
    growth: Growth
    inside: bool = False
    stepping: bool = True


@immutable()
class LoopResult:
    """A loop of the project that ran."""

    path: str
    line: int
    end_line: int
    entries: int
    turns: int
    cuts: int  # how often it was left early, for the budget
    stepping: bool  # whether steps ended inside
    peak: int | None = None  # the most bytes held at once while it ran, that is in its longest entry


@immutable()
class LineBytes:
    """The bytes of one line at the peak."""

    path: str
    line: int
    function: str
    nbytes: int
    storages: int


@immutable()
class LineGrowth:
    """How the bytes that one line made, and that are still held, grow along a series."""

    path: str
    line: int
    function: str
    series: str
    growth: Growth


@immutable()
class DeviceUse:
    """What a process had on one of the several GPUs that it used."""

    device: str
    peak: int
    peak_reserved: int | None
    live_at_end: int
    growth: tuple[SeriesGrowth, ...] = ()


@immutable()
class RunResult:
    """One run of a program; of several processes, that of the one with the highest peak, and `ranks` are all of them.

    Of several GPUs that a process used, the figures are those of the one with the highest peak.
    """

    end: End
    error: str | None = None  # one line
    traceback: str = ""  # of the program, or the last of its error stream
    out_of_memory: str | None = None  # the device had none left, for this line of the user's ("path:line")
    exit_code: int | None = None
    backend: str = ""
    description: str = ""  # of the backend, for people
    card: str = ""  # the GPU, real or simulated; empty where the host is measured
    capacity: int | None = None  # the bytes that it has for torch; None where the host is measured
    device: str = ""
    torch: str = ""
    python: str = ""
    threads: int = 0
    seed: int = 0
    tracked: bool = True
    seconds: float = 0.0
    seconds_per_step: float | None = None
    peak: int = 0
    peak_reserved: int | None = None
    live_at_end: int = 0
    series: str = ""  # the steps that `steps` counts
    steps: int = 0
    step_peaks: tuple[int, ...] = ()
    step_live: tuple[int, ...] = ()
    growth: tuple[SeriesGrowth, ...] = ()
    host_growth: Growth = NO_GROWTH  # of the C heap beside tensors, along the steps
    host_measured: bool = False  # the C library tells its heap
    loops: tuple[LoopResult, ...] = ()
    cut_passes: int = 0  # of loaders
    kinds: Mapping[str, int] = field(default_factory=dict)  # at the peak
    lines: tuple[LineBytes, ...] = ()  # at the peak, most first
    curve: Curve = NO_CURVE
    growing_lines: tuple[LineGrowth, ...] = ()  # certain ones, steepest first
    reached: Mapping[str, int] = field(default_factory=dict)  # "path:row" -> times
    files: tuple[str, ...] = ()  # of the project, that were run
    left_out: Mapping[str, int] = field(default_factory=dict)  # what was replaced, and how often
    analysis: Mapping[str, Any] = field(default_factory=dict)
    failed_looks: int = 0  # times that what looks at the program failed
    failed_look: str = ""  # what the first of these said
    demands: Demands = NO_DEMANDS
    allocator: AllocatorUse | None = None  # of a real GPU
    devices: tuple[DeviceUse, ...] = ()  # where there are several
    rank: int | None = None
    ranks: tuple[RunResult, ...] = ()
    ended: float = 0.0  # seconds since 1970

    @property
    def simulated(self) -> bool:
        """Whether the figures come from a model of the device instead of the device."""
        return self.backend == SIMULATED

    @property
    def faces(self) -> tuple[RunResult, ...]:
        """The run as each device of each of its processes saw it: itself, where there is one of either."""
        found: list[RunResult] = []
        for process in self.ranks or (self,):
            found += (process._seen_by(use) for use in process.devices) if process.devices else (process,)
        return tuple(found)

    @property
    def analyses(self) -> tuple[Mapping[str, Any], ...]:
        """What the analysis found in each of its processes."""
        return tuple(one.analysis for one in self.ranks or (self,) if one.analysis)

    def _seen_by(self, use: DeviceUse) -> RunResult:
        figures = {field.name: getattr(use, field.name) for field in fields(DeviceUse)}
        return replace(self, **figures, ranks=())

    @property
    def place(self) -> str:
        """Which of several processes or devices this is, in words; empty where there is but one."""
        words = [f"rank {self.rank}"] if self.rank is not None else []
        return ", ".join([*words, *([self.device] if self.devices else [])])

    @property
    def steepest(self) -> SeriesGrowth | None:
        """The steepest certain growth from step to step (of a program without steps, from turn to turn), or None."""
        stepping = any(one.stepping for one in self.growth)
        certain = [one for one in self.growth if one.growth.certain and not one.inside and one.stepping == stepping]
        return max(certain, key=lambda one: one.growth.bytes_per_step, default=None)

    @property
    def growth_per_step(self) -> float:
        """Bytes by which what is held grows with each step or turn; 0.0 where it does not grow in a line."""
        steepest = self.steepest
        return steepest.growth.bytes_per_step if steepest is not None else 0.0

    @property
    def usable(self) -> bool:
        """Whether there is something to compare: the program ran, if not to its end."""
        if self.end is End.KILLED:
            return False
        return self.end is not End.FAILED or self.steps > 0 or self.out_of_memory is not None

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        values = asdict(replace(self, ranks=()))
        values["end"] = self.end.value
        values["ranks"] = [one.to_json() for one in self.ranks]
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunResult:
        """Back from them."""
        known = dict(values)
        known["end"] = End(known["end"])
        known["growth"] = _series(known["growth"])
        known["devices"] = tuple(DeviceUse(**{**one, "growth": _series(one["growth"])}) for one in known["devices"])
        known["ranks"] = tuple(cls.from_json(one) for one in known["ranks"])
        known["host_growth"] = Growth(**known["host_growth"])
        known["loops"] = tuple(LoopResult(**one) for one in known["loops"])
        known["lines"] = tuple(LineBytes(**one) for one in known["lines"])
        known["curve"] = Curve.from_json(known["curve"])
        known["allocator"] = AllocatorUse.from_json(known["allocator"])
        known["demands"] = Demands.from_json(known["demands"])
        known["growing_lines"] = tuple(
            LineGrowth(**{**one, "growth": Growth(**one["growth"])}) for one in known["growing_lines"]
        )
        for name in ("step_peaks", "step_live", "files"):
            known[name] = tuple(known[name])
        return cls(**known)

    def write(self, path: Path) -> None:
        """To a file, whole or not at all, also where two threads of a run that is being ended write at once."""
        unfinished = path.with_suffix(f".{threading.get_ident()}.unfinished")
        unfinished.write_text(json.dumps(self.to_json()), encoding="utf-8")
        unfinished.replace(path)

    @classmethod
    def read(cls, path: Path) -> RunResult:
        """From a file that `write` wrote."""
        return cls.from_json(json.loads(path.read_text(encoding="utf-8")))


def _series(values: Iterable[Mapping[str, Any]]) -> tuple[SeriesGrowth, ...]:
    return tuple(SeriesGrowth(**{**one, "growth": Growth(**one["growth"])}) for one in values)
