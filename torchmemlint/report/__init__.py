"""Reports: what a run found, in the format that the reader wants. One module for each format."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TextIO, get_args

from torchmemlint.engine.run import RunReport

OutputFormat = Literal["full", "concise", "json"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)


def write(
    report: RunReport,
    output_format: OutputFormat,
    stream: TextIO,
    *,
    color: bool,
    root: Path,
    statistics: bool = False,
) -> None:
    """Write the report to `stream`: the findings (or with `statistics` a count for each rule), then the summary.

    Paths are given relative to `root`, in JSON from the top. JSON has no summary.
    """
    # Formats are imported when they are asked for: start-up time is the user's time.
    from torchmemlint.report.paint import Paint

    paint = Paint(color)
    if output_format == "json":
        from torchmemlint.report import json_format
        from torchmemlint.report import statistics as counts

        _emit(stream, [counts.text(report) if statistics else json_format.text(report, root)])
        return
    if statistics:
        from torchmemlint.report import statistics as counts

        _emit(stream, counts.lines(report, paint))
    elif output_format == "full":
        from torchmemlint.report import full

        _emit(stream, full.lines(report, root, paint))
    else:
        from torchmemlint.report import concise

        _emit(stream, concise.lines(report, root, paint))
    if report.show_summary:
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
