"""One line for each finding: `path:row:column: CODE [*] message`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.report.columns import show
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import mark, shown_path


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The findings."""
    colon = paint.gutter(":")
    for finding in report.findings:
        start = finding.span.start
        place = colon.join((paint.strong(shown_path(finding.filename, root)), str(start.row), f"{start.column}{colon}"))
        sign = mark(finding, unsafe=report.unsafe_fixes)
        parts = (
            place,
            paint.severity(finding.severity, finding.code),
            paint.fixable(sign),
            show(" ".join(finding.message.split())).text,
        )
        yield " ".join(part for part in parts if part)
