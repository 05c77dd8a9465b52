"""Findings of notebooks for what knows nothing of cells: with places in the file as a text, that is in its JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import CellIndex, Edit, Evidence, Finding, Fix, Span
from torchmemlint.report.places import evidence_place, place


def in_files(report: RunReport) -> RunReport:
    """The report with all places, and the source that they are in, those of the files as texts."""
    notebooks = {finding.filename for finding in report.findings if finding.cells is not None}
    if not notebooks:
        return report

    def sources(path: Path) -> list[str]:
        return report.raw_sources(path) if path in notebooks else report.sources(path)

    return replace(report, findings=tuple(map(in_file, report.findings)), sources=sources)


def in_file(finding: Finding) -> Finding:
    """The same finding in the text of its file. What it says begins with the cell, the row and the column."""
    cells = finding.cells
    if cells is None:
        return finding
    return replace(
        finding,
        message=f"{place(finding, finding.span.start).text}: {finding.message}",
        span=_span(finding.span, cells),
        statement=_span(finding.statement, cells),
        evidence=tuple(_evidence(one, finding, cells) for one in finding.evidence),
        fix=None if finding.fix is None else replace(finding.fix, edits=_edits(finding.fix, cells)),
        cells=None,
    )


def _span(span: Span, cells: CellIndex) -> Span:
    return Span(cells.in_file(span.start), cells.in_file(span.end))


def _evidence(evidence: Evidence, finding: Finding, cells: CellIndex) -> Evidence:
    where = evidence_place(evidence, finding, evidence.span.start)
    if where.cell is None:
        return evidence
    return replace(evidence, message=f"{where.text}: {evidence.message}", span=_span(evidence.span, cells))


def _edits(fix: Fix, cells: CellIndex) -> tuple[Edit, ...]:
    """The edits as edits of JSON; none where one of them adds or takes away a row, which is an item of a list there."""
    if any(edit.span.start.row != edit.span.end.row or "\n" in edit.content for edit in fix.edits):
        return ()
    return tuple(Edit(_span(edit.span, cells), json.dumps(edit.content)[1:-1]) for edit in fix.edits)
