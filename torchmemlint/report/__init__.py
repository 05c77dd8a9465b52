"""Reports: what a run found, in the format that the reader wants. One module for each format."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from torchmemlint.engine.run import RunReport
from torchmemlint.report.formats import FORMATS


def write(
    report: RunReport,
    output_format: str,
    stream: TextIO,
    *,
    color: bool,
    root: Path,
    statistics: bool = False,
    width: int = 0,
    links: bool = False,
) -> None:
    """Write the report to `stream`: the findings (or with `statistics` a count for each rule), then the summary.

    Paths are given as read from `root`, where the format does not ask for others. Only formats for reading have a
    summary. `width` is that of a terminal that lines are wrapped to, and `links` says whether it knows links.
    """
    from torchmemlint.report.paint import Paint

    paint = Paint(color, width, links)
    chosen = FORMATS[output_format]
    if not statistics:
        _emit(stream, chosen.lines(report, root, paint))
    else:
        from torchmemlint.report import statistics as counts

        _emit(stream, counts.lines(report, paint) if chosen.closing else [chosen.tally(report)])
    if chosen.closing and report.show_summary:
        write_summary(report, stream, color=color, root=root)


def write_summary(report: RunReport, stream: TextIO, *, color: bool, root: Path) -> None:
    """Write the closing lines alone."""
    from torchmemlint.report import summary
    from torchmemlint.report.paint import Paint

    _emit(stream, summary.lines(report, root, Paint(color)))


def write_diff(report: RunReport, stream: TextIO, *, color: bool, root: Path) -> None:
    """Write what the fixes change as a unified diff."""
    from torchmemlint.report import diff
    from torchmemlint.report.paint import Paint

    _emit(stream, diff.lines(report, root, Paint(color)))


def _emit(stream: TextIO, lines: Iterable[str]) -> None:
    from torchmemlint.report.places import emit

    for line in lines:
        emit(stream, line + "\n")
