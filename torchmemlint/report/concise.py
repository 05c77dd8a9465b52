"""One line for each finding: `path:row:column: CODE [*] message`.

At its end, in brackets, stands why it is not certain, what was measured of it, and where in other files its evidence
stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import asides, mark, one_line, place, printed_path


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The findings."""
    colon = paint.gutter(":")
    for finding in report.findings:
        start = place(finding, finding.span.start)
        path = paint.strong(printed_path(finding.filename, root))
        where = colon.join((path, *start.brief.split(":"), f"{start.column}{colon}"))
        yield f"{where} {remarks(finding, report, root, paint)}"


def remarks(finding: Finding, report: RunReport, root: Path, paint: Paint) -> str:
    """What stands behind the place: the code, whether a fix is at hand, the message, and what is in brackets."""
    parts = (
        paint.severity(finding.severity, finding.code),
        paint.fixable(mark(finding, unsafe=report.unsafe_fixes)),
        one_line(finding.message),
        *map(paint.faint, asides(finding, root)),
    )
    return " ".join(part for part in parts if part)
