"""Fills the page for `oom`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.report.oom import failure_rows, fix_words, growing_words, kinds_words, place_of, remedy_rows
from torchmemlint.report.page import chart
from torchmemlint.report.page.page import KINDS, environment
from torchmemlint.snapshot.report import Branch, DeviceReport, Moment, OomReport

_LINES = 40
_ROW, _LEAST = 19, 0.002  # pixels of a row of the flame graph, and the least share of the width that is drawn


@immutable()
class Flame:
    """A rectangle of the flame graph: pixels, and its label."""

    x: float
    y: int
    width: float
    label: str
    nbytes: int
    shade: int  # 0 to 3


def oom_page(report: OomReport, root: Path) -> str:
    """The page of a snapshot; paths as seen from `root`."""
    made = environment(root)
    made.globals |= {"words": kinds_words, "fix": fix_words, "growing": growing_words}
    made.filters["place"] = lambda site: place_of(site, root)
    devices = [_device(one, root) for one in report.devices]
    return str(made.get_template("oom.html.jinja").render(report=report, devices=devices, most=_LINES))


def _device(device: DeviceReport, root: Path) -> dict[str, Any]:
    failed = device.failures[-1] if device.failures else None
    moments = [("the request that failed", failed.moment)] if failed is not None else []
    if failed is None or failed.moment.allocated < device.peak.allocated:
        moments.append(("the peak", device.peak))
    return {
        "report": device,
        "failed": failed,
        "failure_rows": list(failure_rows(failed)) if failed is not None else [],
        "remedies": list(remedy_rows(failed, root)) if failed is not None else [],
        "chart": chart.stacked(device.curve, KINDS) if device.events else None,
        "moments": [(title, moment, _flames(moment)) for title, moment in moments],
    }


def _flames(moment: Moment) -> dict[str, Any]:
    drawn = list(_drawn(moment.calls, 0.0, 0, float(chart.WIDTH), max(1, moment.calls.nbytes)))
    return {
        "boxes": drawn,
        "width": chart.WIDTH,
        "height": max((one.y for one in drawn), default=0) + _ROW,
        "row": _ROW,
    }


def _drawn(branch: Branch, x: float, depth: int, scale: float, total: int) -> Iterator[Flame]:
    width = scale * branch.nbytes / total
    if width < _LEAST * scale:
        return
    yield Flame(x, depth * _ROW, width, branch.label, branch.nbytes, sum(map(ord, branch.label)) % 4)
    for call in branch.calls:
        yield from _drawn(call, x, depth + 1, scale, total)
        x += scale * call.nbytes / total
