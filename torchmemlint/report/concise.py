"""One line for each finding: `path:row:column: CODE [*] message`.

At its end, in brackets, stands what was measured of it, and where in other files its evidence stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding
from torchmemlint.report.columns import show
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import elsewhere, mark, one_line, place, shown_path, shown_place

_FILES = 2  # other files that are named


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The findings."""
    colon = paint.gutter(":")
    for finding in report.findings:
        start = place(finding, finding.span.start)
        path = paint.strong(show(shown_path(finding.filename, root)).text)
        where = colon.join((path, *start.brief.split(":"), f"{start.column}{colon}"))
        yield f"{where} {remarks(finding, report, root, paint)}"


def remarks(finding: Finding, report: RunReport, root: Path, paint: Paint) -> str:
    """What stands behind the place: the code, whether a fix is at hand, the message, and what is in brackets."""
    parts = (
        paint.severity(finding.severity, finding.code),
        paint.fixable(mark(finding, unsafe=report.unsafe_fixes)),
        one_line(finding.message),
        paint.faint(_measured(finding)),
        paint.faint(_see(finding, root)),
    )
    return " ".join(part for part in parts if part)


def _measured(finding: Finding) -> str:
    """`(measured: +48.0 MiB per step)`: what an earlier run told."""
    return f"(measured: {finding.measured.brief})" if finding.measured is not None else ""


def _see(finding: Finding, root: Path) -> str:
    """`(see meters.py:8)`: where in each other file the evidence begins."""
    places: dict[Path, str] = {}
    for evidence in finding.evidence:
        filename = elsewhere(evidence, finding, root)
        if filename is not None:
            places.setdefault(filename, shown_place(filename, evidence.span.start.row, root))
    return f"(see {', '.join(list(places.values())[:_FILES])})" if places else ""
