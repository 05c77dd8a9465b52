"""The findings as a JSON list in the shape of ruff's.

Every field of ruff's own output is there (`cell` and `noqa_row` too), so what reads that reads this; `evidence`
and `fingerprint` are added, and `measured` where an earlier run told what the finding costs. `schema.json` beside
this module describes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Edit, Evidence, Finding, Fix, Position
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import absolute_path, rule_url
from torchmemlint.source.suppressions import rows_of


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The whole list, in ASCII, so that it survives any stream."""
    yield json.dumps([finding_object(finding, root) for finding in report.findings], indent=2, sort_keys=True)


def finding_object(finding: Finding, root: Path) -> dict[str, Any]:
    """One finding."""
    told = {} if finding.measured is None else {"measured": finding.measured.to_json()}
    return {
        "cell": None,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "filename": str(absolute_path(finding.filename, root)),
        "location": _location(finding.span.start),
        "end_location": _location(finding.span.end),
        "noqa_row": rows_of(finding)[1],
        "evidence": [_evidence(one, finding, root) for one in finding.evidence],
        "fix": None if finding.fix is None else _fix(finding.fix),
        "fingerprint": finding.fingerprint,
        "url": rule_url(finding.code),
        **told,
    }


def _location(position: Position) -> dict[str, int]:
    return {"row": position.row, "column": position.column}


def _evidence(evidence: Evidence, finding: Finding, root: Path) -> dict[str, Any]:
    return {
        "message": evidence.message,
        "filename": str(absolute_path(evidence.filename or finding.filename, root)),
        "location": _location(evidence.span.start),
        "end_location": _location(evidence.span.end),
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "message": fix.message,
        "applicability": fix.applicability.value,
        "edits": [_edit(edit) for edit in fix.edits],
    }


def _edit(edit: Edit) -> dict[str, Any]:
    return {
        "content": edit.content,
        "location": _location(edit.span.start),
        "end_location": _location(edit.span.end),
    }
