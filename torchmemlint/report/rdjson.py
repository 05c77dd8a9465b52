"""The Reviewdog Diagnostic Format (`reviewdog -f=rdjson`). Its columns count bytes of UTF-8."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Edit, Evidence, Finding, Position, Severity, Span
from torchmemlint.fixes.edits import EditError, apply_edits
from torchmemlint.fixes.eligibility import eligible
from torchmemlint.report.message import message_of
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import (
    elsewhere,
    evidence_span,
    file_fix,
    file_lines,
    file_span,
    shown_path,
    with_cell,
)

LONGEST = 20  # rows of a suggestion; one that also adds an import far above would rewrite all between
_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.ADVICE: "INFO"}


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The document, in ASCII, so that it survives any stream."""
    document = {
        "source": {"name": "torchmemlint", "url": "https://torchmemlint.readthedocs.io"},
        "diagnostics": [_diagnostic(finding, report, root) for finding in report.findings],
    }
    yield json.dumps(document, indent=2)


def _diagnostic(finding: Finding, report: RunReport, root: Path) -> dict[str, Any]:
    source = file_lines(finding, report)
    message = message_of(finding)
    found: dict[str, Any] = {
        "message": " ".join((with_cell(message.what, finding), *message.asides)),
        "location": {"path": _path(finding.filename, root), "range": _range(file_span(finding, finding.span), source)},
        "severity": _SEVERITIES[finding.severity],
        "code": {"value": finding.code, "url": message.url},
    }
    related = [_related(evidence, finding, report, root) for evidence in finding.evidence]
    if related:
        found["related_locations"] = related
    edit = _one_edit(finding, report, source)
    if edit is not None:
        found["suggestions"] = [{"range": _range(edit.span, source), "text": edit.content}]
    return found


def _related(evidence: Evidence, finding: Finding, report: RunReport, root: Path) -> dict[str, Any]:
    other = elsewhere(evidence, finding, root)
    source = file_lines(finding, report) if other is None else report.sources(other)
    found = {"path": _path(other or finding.filename, root), "range": _range(evidence_span(evidence, finding), source)}
    return {"message": evidence.message, "location": found}


def _path(path: Path, root: Path) -> str:
    return Path(shown_path(path, root)).as_posix()


def _range(span: Span, source: Sequence[str]) -> dict[str, Any]:
    return {"start": _position(span.start, source), "end": _position(span.end, source)}


def _position(position: Position, source: Sequence[str]) -> dict[str, int]:
    line = source[position.row - 1] if position.row <= len(source) else ""
    before = line[: position.column - 1]
    beyond = position.column - 1 - len(before)  # where the source is gone, or the newline is meant
    return {"line": position.row, "column": len(before.encode("utf-8", "surrogatepass")) + beyond + 1}


def _one_edit(finding: Finding, report: RunReport, source: Sequence[str]) -> Edit | None:
    """What `--fix` would do, as one replacement: suggestions are alternatives, so the parts of one fix must be one."""
    fix = file_fix(finding) if eligible(finding, unsafe=report.unsafe_fixes) else None
    if fix is None:
        return None
    edits = sorted(set(fix.edits))
    if len(edits) == 1:
        return edits[0]
    first, last = edits[0].span.start.row, max(edit.span.end.row for edit in edits)
    if last - first >= LONGEST or last > len(source):
        return None
    block = source[first - 1 : last]
    moved = [Edit(Span(_up(edit.span.start, first), _up(edit.span.end, first)), edit.content) for edit in edits]
    try:
        text = apply_edits("\n".join(block), moved)
    except EditError:
        return None
    return Edit(Span(Position(first, 1), Position(last, len(block[-1]) + 1)), text)


def _up(position: Position, first: int) -> Position:
    return Position(position.row - first + 1, position.column)
