"""The format for reading: code frame, evidence chain, why it costs memory, and the fix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Applicability, Evidence, Finding
from torchmemlint.report import order
from torchmemlint.report.changes import diff_lines, hunks
from torchmemlint.report.columns import pad, shorten, show, text_width
from torchmemlint.report.frame import code_frame, rows_shown
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import elsewhere, mark, shown_path, shown_place

SOURCE_WIDTH = 44  # columns for the source of a link of the evidence chain
_TRUST = {
    Applicability.SAFE: ("fix", "safe"),
    Applicability.UNSAFE: ("fix", "unsafe: may change results"),
    Applicability.HINT: ("help", ""),
}


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The findings, the most costly first, a blank line after each; then the advice that is folded."""
    for in_full, repeated in order.shown(report):
        for finding in in_full:
            yield from finding_lines(finding, report, root, paint)
            yield ""
        if repeated:
            yield from order.repeated_lines(repeated, root, paint, unsafe=report.unsafe_fixes)
    yield from order.folded_lines(order.folded(report), root, paint)


def finding_lines(finding: Finding, report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """One finding."""
    source = report.sources(finding.filename)
    changes = hunks(source, finding.fix.edits) if finding.fix is not None else []
    chain = [_link(evidence, finding, report, root) for evidence in finding.evidence]
    rows = [
        finding.span.start.row,
        *rows_shown(source, finding.span),
        *(hunk.row + len(hunk.old) for hunk in changes),
        *(hunk.row + sum(len(other.new) for other in changes) for hunk in changes),
    ]
    gutter = len(str(max(rows)))
    place = f"{show(shown_path(finding.filename, root)).text}:{finding.span.start.row}:{finding.span.start.column}"
    yield _headline(finding, paint, unsafe=report.unsafe_fixes)
    yield f"{' ' * gutter}{paint.gutter('-->')} {place}"
    yield from code_frame(source, finding.span, gutter, paint)
    margin = f"{' ' * gutter} {paint.gutter('=')} "
    yield from _chain_lines(chain, margin, paint)
    if finding.why:
        yield f"{margin}{paint.strong('why')}: {_one_line(finding.why)}"
    if finding.measured is not None:
        yield f"{margin}{paint.strong('measured')}: {_one_line(finding.measured.sentence)}"
    if finding.fix is not None:
        word, trust = _TRUST[finding.fix.applicability]
        note = f" {paint.faint(f'({trust})')}" if trust else ""
        yield f"{margin}{paint.strong(word)}{note}: {_one_line(finding.fix.message)}"
        if changes:
            yield f"{' ' * gutter} {paint.gutter('|')}"
            yield from diff_lines(changes, gutter, paint)
            yield f"{' ' * gutter} {paint.gutter('|')}"


def _headline(finding: Finding, paint: Paint, *, unsafe: bool) -> str:
    colour = finding.severity
    sign = mark(finding, unsafe=unsafe)
    parts = (
        paint.severity(colour, finding.code),
        paint.fixable(sign),
        paint.strong(finding.name),
        paint.severity(colour, f"({finding.severity.value}):"),
        _one_line(finding.message),
    )
    return " ".join(part for part in parts if part)


def _link(evidence: Evidence, finding: Finding, report: RunReport, root: Path) -> tuple[str, str, str]:
    """Place, source and message of one link of the evidence chain."""
    other = elsewhere(evidence, finding, root)
    filename = other or finding.filename
    row = evidence.span.start.row
    source = report.sources(filename)
    place = shown_place(filename, row, root) if other is not None else str(row)
    return place, _excerpt(source, evidence) if 1 <= row <= len(source) else "", _one_line(evidence.message)


def _excerpt(source: Sequence[str], evidence: Evidence) -> str:
    """The line that the evidence is on, or the evidence alone where the line is too wide."""
    start, end = evidence.span.start, evidence.span.end
    line = source[start.row - 1]
    whole = show(line.strip()).text
    if text_width(whole) <= SOURCE_WIDTH:
        return whole
    part = line[start.column - 1 : end.column - 1 if end.row == start.row else None]
    return shorten(show(part.strip() or line.strip()).text, SOURCE_WIDTH)


def _chain_lines(chain: Sequence[tuple[str, str, str]], margin: str, paint: Paint) -> Iterator[str]:
    """The chain as a small table: place, source, what it shows."""
    places = max((text_width(place) for place, _, _ in chain), default=0)
    sources = max((text_width(source) for _, source, _ in chain), default=0)
    for place, source, message in chain:
        blank = " " * (places - text_width(place))
        yield f"{margin}{blank}{paint.gutter(place)} {paint.gutter('│')} {pad(source, sources)}  {paint.faint(message)}"


def _one_line(text: str) -> str:
    return show(" ".join(text.split())).text
