"""What an experiment gave: plain data, to be kept, compared and shown. Knows nothing of torch."""

from __future__ import annotations

import enum
from dataclasses import asdict
from typing import Any

from torchmemlint.immutable import immutable


class Effect(enum.Enum):
    """The figure in which a rule's pattern shows."""

    GROWTH = "growth"
    """Bytes held on the device grow with each step."""
    PEAK = "peak"
    """The device's peak is higher."""
    HOST_PEAK = "host peak"
    """The peak of the tensors on the host is higher."""
    HOST_GROWTH = "host growth"
    """The host's heap grows with each step."""
    TIME = "time"
    """A step takes longer."""
    WORKERS = "worker memory"
    """The worker processes of a loader hold more memory of their own."""
    SEGMENTS = "driver calls"
    """The allocator asks the driver for memory more often in each step."""


@immutable()
class Figures:
    """What one variant took: bytes, bytes per step, segments asked of the driver per step, the median seconds of a
    step (without the tracker), and the bytes that no other process shares with a loader's workers, all together."""

    peak: int
    peak_reserved: int | None
    growth_per_step: float
    host_peak: int
    host_growth_per_step: float | None
    segments_per_step: float | None
    seconds_per_step: float | None
    worker_bytes: int | None = None

    def of(self, effect: Effect) -> float | None:
        """The figure for an effect; None where it was not measured."""
        match effect:
            case Effect.GROWTH:
                return self.growth_per_step
            case Effect.PEAK:
                return self.peak
            case Effect.HOST_PEAK:
                return self.host_peak
            case Effect.HOST_GROWTH:
                return self.host_growth_per_step
            case Effect.TIME:
                return self.seconds_per_step
            case Effect.WORKERS:
                return self.worker_bytes
            case Effect.SEGMENTS:
                return self.segments_per_step


@immutable()
class Outcome:
    """An experiment's two variants on one backend."""

    code: str
    title: str
    effect: Effect
    backend: str
    bad: Figures
    good: Figures
    note: str = ""

    @property
    def saved(self) -> float | None:
        """What the good variant saves, in the effect's own unit (bytes, bytes per step, seconds per step)."""
        bad, good = self.bad.of(self.effect), self.good.of(self.effect)
        return None if bad is None or good is None else bad - good

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {**asdict(self), "effect": self.effect.value}

    @staticmethod
    def from_json(told: dict[str, Any]) -> Outcome:
        """What `to_json` gave."""
        figures = {name: Figures(**told[name]) for name in ("bad", "good")}
        return Outcome(**{**told, **figures, "effect": Effect(told["effect"])})
