"""The format for reading: code frame, evidence chain, why it costs memory, and the fix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Position, Span
from torchmemlint.report import order
from torchmemlint.report.changes import diff_lines, hunks
from torchmemlint.report.columns import pad, shorten, show, text_width
from torchmemlint.report.frame import code_frame, rows_shown
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import doubts, elsewhere, evidence_place, mark, place, printed_path, shown_place

SOURCE_WIDTH = 44  # columns for the source of a link of the evidence chain
TRUST = {
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
    yield from order.folded_lines(order.folded(report), root, paint, order.room(report))


def finding_lines(finding: Finding, report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """One finding."""
    chain = [link(evidence, finding, report, root) for evidence in finding.evidence]
    where = place(finding, finding.span.start)
    finding, source = in_its_cell(finding, report.sources(finding.filename))
    changes = hunks(source, finding.fix.edits) if finding.fix is not None else []
    rows = [
        finding.span.start.row,
        *rows_shown(source, finding.span),
        *(hunk.row + len(hunk.old) for hunk in changes),
        *(hunk.row + sum(len(other.new) for other in changes) for hunk in changes),
    ]
    gutter = len(str(max(rows)))
    yield _headline(finding, paint, unsafe=report.unsafe_fixes)
    yield f"{' ' * gutter}{paint.gutter('-->')} {printed_path(finding.filename, root)}:{where.text}"
    yield from code_frame(source, finding.span, gutter, paint)
    margin = f"{' ' * gutter} {paint.gutter('=')} "
    yield from _chain_lines(chain, margin, paint)
    if finding.doubts:
        yield f"{margin}{paint.strong(finding.confidence.value)}: {doubts(finding)}"
    if finding.why:
        yield f"{margin}{paint.strong('why')}: {_one_line(finding.why)}"
    if finding.measured is not None:
        yield f"{margin}{paint.strong('measured')}: {_one_line(finding.measured.sentence)}"
    if finding.fix is not None:
        word, trust = TRUST[finding.fix.applicability]
        note = f" {paint.faint(f'({trust})')}" if trust else ""
        yield f"{margin}{paint.strong(word)}{note}: {_one_line(finding.fix.message)}"
        if changes:
            yield f"{' ' * gutter} {paint.gutter('|')}"
            yield from diff_lines(changes, gutter, paint)
            yield f"{' ' * gutter} {paint.gutter('|')}"


def in_its_cell(finding: Finding, source: Sequence[str]) -> tuple[Finding, Sequence[str]]:
    """A finding of a notebook as one of its cell alone, with the rows of that cell. What a fix changes in other cells
    is left out.
    """
    if finding.cells is None:
        return finding, source
    first, end = finding.cells.rows(finding.span.start.row)
    fix = finding.fix
    if fix is not None:
        edits = (edit for edit in fix.edits if first <= edit.span.start.row and edit.span.end.row <= end)
        fix = replace(fix, edits=tuple(Edit(_moved(edit.span, first), edit.content) for edit in edits))
    return replace(finding, span=_moved(finding.span, first), fix=fix), source[first - 1 : end - 1]


def _moved(span: Span, first: int) -> Span:
    start, end = span.start, span.end
    return Span(Position(start.row - first + 1, start.column), Position(end.row - first + 1, end.column))


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


def link(evidence: Evidence, finding: Finding, report: RunReport, root: Path) -> tuple[str, str, str]:
    """Place, source and message of one link of the evidence chain."""
    other = elsewhere(evidence, finding, root)
    filename = other or finding.filename
    row = evidence.span.start.row
    source = report.sources(filename)
    own = evidence_place(evidence, finding, evidence.span.start)
    in_other_cell = own.cell != place(finding, finding.span.start).cell
    where = shown_place(filename, row, root) if other is not None else own.brief if in_other_cell else str(own.row)
    return where, _excerpt(source, evidence) if 1 <= row <= len(source) else "", _one_line(evidence.message)


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
    places = max((text_width(where) for where, _, _ in chain), default=0)
    sources = max((text_width(source) for _, source, _ in chain), default=0)
    for where, source, message in chain:
        blank = " " * (places - text_width(where))
        yield f"{margin}{blank}{paint.gutter(where)} {paint.gutter('│')} {pad(source, sources)}  {paint.faint(message)}"


def _one_line(text: str) -> str:
    return show(" ".join(text.split())).text
