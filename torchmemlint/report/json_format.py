"""A run as a JSON document: the version of its schema, a summary, and the findings.

A finding has the parts of its message (`what`, `why`, `cost`, `fix`, `confidence`, `url`); its places are written as
ruff writes them. `schema.json` beside this module describes the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchmemlint import __version__
from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Edit, Evidence, Finding, Fix, Position, Severity
from torchmemlint.fixes.eligibility import eligible
from torchmemlint.report import statistics
from torchmemlint.report.message import message_of
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import Place, absolute_path, evidence_place, place
from torchmemlint.source.suppressions import rows_of

VERSION = 1
"""Of the schema: it rises when a key changes its meaning or goes; new keys leave it."""


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The document, in ASCII, so that it survives any stream."""
    yield document(report, findings=[finding_object(finding, root) for finding in report.findings])


def counts(report: RunReport) -> str:
    """The document without findings, for `--statistics`."""
    return document(report)


def document(report: RunReport, **parts: Any) -> str:
    """A document with the version, the summary and these parts."""
    return json.dumps({"schema_version": VERSION, "summary": summary(report), **parts}, indent=2, sort_keys=True)


def summary(report: RunReport) -> dict[str, Any]:
    """What the closing lines of the formats for reading say."""
    safe = sum(eligible(finding, unsafe=False) for finding in report.findings)
    unsafe = sum(eligible(finding, unsafe=True) for finding in report.findings) - safe
    severities = [finding.severity for finding in report.findings]
    return {
        "torchmemlint": __version__,
        "files": {"checked": report.files_checked, "skipped": report.files_skipped},
        "findings": {"total": len(severities), **{one.value: severities.count(one) for one in Severity}},
        "failing": report.failing,
        "fixable": {"safe": safe, "unsafe": unsafe},
        "fixed": sum(len(one.applied) for one in report.fixed),
        "not_shown": {
            "less_certain": report.unsure,
            "in_baseline": sum(one.count for one in report.left_out),
        },
        "rules": statistics.objects(report),
        "errors": list(report.errors),
    }


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
