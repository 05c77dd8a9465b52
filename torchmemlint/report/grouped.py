"""The findings of each file under its name, as in ruff's format of this name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.report.columns import pad
from torchmemlint.report.concise import remarks
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import place, printed_path


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The file, then a line for each of its findings, then a blank line."""
    for filename, found in groupby(report.findings, key=lambda finding: finding.filename):
        findings = list(found)
        places = [place(finding, finding.span.start).text for finding in findings]
        width = max(map(len, places))
        yield f"{paint.strong(printed_path(filename, root))}:"
        for finding, where in zip(findings, places, strict=True):
            yield f"  {pad(where, width)}  {remarks(finding, report, root, paint)}"
        yield ""
