"""A run as a JSON document: the version of its schema, a summary, and the findings as `json` has them.

`schema.json` beside this module describes the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchmemlint import __version__
from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Severity
from torchmemlint.report import statistics
from torchmemlint.report.json_format import finding_object
from torchmemlint.report.paint import Paint

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
    safe = len(report.fixable(unsafe=False))
    unsafe = len(report.fixable(unsafe=True)) - safe
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
