"""GitLab's code quality report: a subset of Code Climate's issues, shown in merge requests.

The file is named as an artifact under `reports: codequality:`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding, Position, Severity
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import asides, file_span, one_line, repository_path, with_cell

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.ADVICE: "info"}


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The list, in ASCII, so that it survives any stream."""
    seen: set[str] = set()
    yield json.dumps([_issue(finding, root, seen) for finding in report.findings], indent=2)


def _issue(finding: Finding, root: Path, seen: set[str]) -> dict[str, Any]:
    span = file_span(finding, finding.span)
    start, end = span.start, span.end
    path, text = repository_path(finding.filename, root), one_line(with_cell(finding.message, finding))
    return {
        "type": "issue",
        "check_name": f"{finding.code} {finding.name}",
        "description": " ".join((f"{finding.code}: {text}", *asides(finding, root))),
        "categories": ["Performance"],
        "severity": _SEVERITIES[finding.severity],
        "fingerprint": _unique(finding, path, seen),
        "location": {
            "path": path,
            "lines": {"begin": start.row, "end": end.row},
            "positions": {"begin": _position(start), "end": _position(end)},
        },
    }


def _position(position: Position) -> dict[str, int]:
    return {"line": position.row, "column": position.column}


def _unique(finding: Finding, path: str, seen: set[str]) -> str:
    """GitLab shows only one of those that share a fingerprint; two files of one name may share ours."""
    number = 0
    while True:
        text = "\0".join((path, finding.code, finding.fingerprint, str(number)))
        found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if found not in seen:
            seen.add(found)
            return found
        number += 1
