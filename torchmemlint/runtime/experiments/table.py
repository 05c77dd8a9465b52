"""An experiment's outcome in words: the cells that the terminal and the documentation show. Knows nothing of torch."""

from __future__ import annotations

from torchmemlint.runtime.experiments.outcome import Effect, Figures, Outcome
from torchmemlint.sizes import format_size

NOTICEABLE = 0.05
"""The share of a step's time that must differ before it is more than noise."""


def figure(figures: Figures, effect: Effect) -> str:
    """A variant's figure for an effect; `?` where the machine could not tell it."""
    value = figures.of(effect)
    if value is None:
        return "?"
    match effect:
        case Effect.TIME:
            return _time(value)
        case Effect.SEGMENTS:
            return f"{value:.1f}/step"
        case Effect.GROWTH | Effect.HOST_GROWTH:
            return f"{format_size(value)}/step"
    return format_size(value)


def _time(seconds: float) -> str:
    """A time in milliseconds, or in microseconds where it is shorter than one."""
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def change(outcome: Outcome) -> str:
    """Bad and good, as `11.3 MiB → 3.2 MiB`; one figure where they do not differ."""
    bad, good = figure(outcome.bad, outcome.effect), figure(outcome.good, outcome.effect)
    return bad if bad == good else f"{bad} → {good}"


def share_of_peak(outcome: Outcome) -> str:
    """By how much the device's peak falls, in percent of the bad variant's; a dash where it does not."""
    peak = outcome.bad.peak
    saved = peak - outcome.good.peak
    return f"-{saved / peak:.0%}" if peak and saved / peak >= 0.005 else "-"


def time_per_step(outcome: Outcome) -> str:
    """The median time of a step, bad and good; a dash where it was not measured."""
    bad, good = outcome.bad.seconds_per_step, outcome.good.seconds_per_step
    if bad is None or good is None:
        return "-"
    if abs(bad - good) < NOTICEABLE * max(bad, good):
        return _time(good)
    return f"{_time(bad)} → {_time(good)}"
