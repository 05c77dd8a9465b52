"""The findings as a JSON list in the shape of ruff's, so that what reads ruff's reads ours.

To ruff's keys come the parts of the message (`what`, which is ruff's `message`, `why`, `cost`, `fix`, `confidence` and
`url`) and what else is known. `json-report` has the same findings in a document of its own (`json_report.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Edit, Evidence, Finding, Fix, Position
from torchmemlint.report import statistics
from torchmemlint.report.message import message_of
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import Place, absolute_path, evidence_place, place
from torchmemlint.source.suppressions import rows_of


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The list, in ASCII, so that it survives any stream."""
    yield json.dumps([finding_object(finding, root) for finding in report.findings], indent=2, sort_keys=True)


def counts(report: RunReport) -> str:
    """How often each rule reports, for `--statistics`."""
    return json.dumps(statistics.objects(report), indent=2)


def finding_object(finding: Finding, root: Path) -> dict[str, Any]:
    """One finding."""
    message = message_of(finding)
    cost = message.cost
    told = {} if finding.measured is None else {"measured": finding.measured.to_json()}
    sized = {} if finding.amount is None else {"amount": finding.amount.to_json()}
    return {
        "cell": place(finding, finding.span.start).cell,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": message.what,
        "what": message.what,
        "why": message.why,
        "cost": None if cost is None else {"text": cost.text, "basis": cost.basis.value},
        "fix": None if finding.fix is None else _fix(finding.fix, finding),
        "confidence": message.confidence.value,
        "doubts": [doubt.to_json() for doubt in message.doubts],
        "url": message.url,
        "filename": str(absolute_path(finding.filename, root)),
        "location": _location(place(finding, finding.span.start)),
        "end_location": _location(place(finding, finding.span.end)),
        "noqa_row": place(finding, Position(rows_of(finding)[1], 1)).row,
        "evidence": [_evidence(one, finding, root) for one in finding.evidence],
        "fingerprint": finding.fingerprint,
        **sized,
        **told,
    }


def _location(place: Place) -> dict[str, int]:
    return {"row": place.row, "column": place.column}


def _cell(finding: Finding, where: Place) -> dict[str, int | None]:
    """Of a notebook the cell, which need not be the finding's."""
    return {} if finding.cells is None else {"cell": where.cell}


def _evidence(evidence: Evidence, finding: Finding, root: Path) -> dict[str, Any]:
    start = evidence_place(evidence, finding, evidence.span.start)
    return {
        "message": evidence.message,
        "filename": str(absolute_path(evidence.filename or finding.filename, root)),
        "location": _location(start),
        "end_location": _location(evidence_place(evidence, finding, evidence.span.end)),
        **_cell(finding, start),
    }


def _fix(fix: Fix, finding: Finding) -> dict[str, Any]:
    return {
        "message": fix.message,
        "applicability": fix.applicability.value,
        "edits": [_edit(edit, finding) for edit in fix.edits],
    }


def _edit(edit: Edit, finding: Finding) -> dict[str, Any]:
    start = place(finding, edit.span.start)
    return {
        "content": edit.content,
        "location": _location(start),
        "end_location": _location(place(finding, edit.span.end)),
        **_cell(finding, start),
    }
