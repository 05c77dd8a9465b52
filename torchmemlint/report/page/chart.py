"""Drawings for the page, as SVG that needs neither a script nor a font from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from torchmemlint.immutable import immutable
from torchmemlint.runtime.curve import Curve
from torchmemlint.sizes import format_size

WIDTH, HEIGHT = 960, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 8, 8, 24
_STEPS_SHOWN = 200


@immutable()
class Area:
    """One kind's band of a stacked chart: the points of a polygon, and the number of its colour."""

    label: str
    number: int
    points: str


@immutable()
class Line:
    """A line across the chart (a number of pixels from the left or the top) with what it is labelled."""

    at: float
    label: str


@immutable()
class Chart:
    """A stacked chart of bytes over a run."""

    areas: tuple[Area, ...]
    levels: tuple[Line, ...]
    steps: tuple[Line, ...]
    peak: Line
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM


def stacked(curve: Curve, colours: Sequence[str]) -> Chart | None:
    """The chart of a curve; None where nothing was allocated. `colours` are the kinds in the order of their colours."""
    totals = curve.totals
    highest = max(totals, default=0)
    if not highest:
        return None
    end = max(curve.events[-1], *curve.steps, 1) if curve.steps else max(curve.events[-1], 1)
    across = (WIDTH - _LEFT - _RIGHT) / end
    up = (HEIGHT - _TOP - _BOTTOM) / (highest * 1.05)

    def x(event: int) -> float:
        return _LEFT + event * across

    def y(nbytes: float) -> float:
        return HEIGHT - _BOTTOM - nbytes * up

    floor = [0] * len(curve.events)
    areas = []
    for label, held in curve.by_kind.items():
        ceiling = [below + nbytes for below, nbytes in zip(floor, held, strict=True)]
        upper = [(x(event), y(nbytes)) for event, nbytes in zip(curve.events, ceiling, strict=True)]
        lower = [(x(event), y(nbytes)) for event, nbytes in zip(curve.events, floor, strict=True)]
        points = " ".join(f"{across_:.1f},{up_:.1f}" for across_, up_ in [*upper, *reversed(lower)])
        areas.append(Area(label, colours.index(label), points))
        floor = ceiling
    top = totals.index(highest)
    steps = [Line(x(event), f"end of step {number}") for number, event in enumerate(curve.steps, 1)]
    if len(steps) > _STEPS_SHOWN:
        steps = steps[:: -(-len(steps) // _STEPS_SHOWN)]
    levels = tuple(Line(y(level), format_size(level)) for level in _levels(highest))
    return Chart(tuple(areas), levels, tuple(steps), Line(x(curve.events[top]), f"peak {format_size(highest)}"))


def _levels(highest: int) -> list[int]:
    """Round numbers of bytes to write at the side: powers of two times one, two or four."""
    step = 1
    while highest / step > 5:
        step *= 2
    return list(range(step, highest + 1, step))


def share(nbytes: float, of: float) -> float:
    """Percent, for the width of a bar; never more than all of it, nor nothing for something."""
    if nbytes <= 0 or of <= 0:
        return 0.0
    return max(0.5, min(100.0, 100.0 * nbytes / of))
