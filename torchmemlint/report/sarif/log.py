"""A run as a SARIF log.

Paths are relative to the top of the repository, since a service knows no other. Columns count Unicode characters, which
`columnKind` says. The evidence of a finding is a code flow, which ends where the finding stands.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from torchmemlint import __version__
from torchmemlint.doubts import Confidence
from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Edit, Evidence, Finding, Fix, Span
from torchmemlint.report.frame import rows_shown
from torchmemlint.report.message import Repair, message_of
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import absolute_path, evidence_span, file_fix, file_span, repository, with_cell
from torchmemlint.report.places import place as place_within
from torchmemlint.report.sarif.hashes import line_hashes
from torchmemlint.report.sarif.rules import LEVELS, describe

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "%SRCROOT%"
_LONGEST = 40  # rows of code that are quoted
_RANKS = {Confidence.CERTAIN: 100.0, Confidence.LIKELY: 75.0, Confidence.POSSIBLE: 25.0}  # of at most 100
_LINK = re.compile(r"\[(?=[^\[\]]*\]\()")  # `losses[i](x)` would be read as a link


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The log, in ASCII, so that it survives any stream; on one line, since large ones are written often."""
    yield json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [_Run(report, root).to_json()]})


class _Run:
    """What the parts of one run have in common: its sources, its folders and the numbers of its rules."""

    def __init__(self, report: RunReport, root: Path) -> None:
        self._report = report
        self._root = root
        self._repository = repository(root)
        firsts: dict[str, Finding] = {}
        for finding in report.findings:
            firsts.setdefault(finding.code, finding)
        self._rules = [describe(firsts[code]) for code in sorted(firsts)]
        self._numbers = {code: number for number, code in enumerate(sorted(firsts))}
        self._hashes: dict[Path, list[str]] = {}

    def to_json(self) -> dict[str, Any]:
        """The run."""
        results = [self._result(finding) for finding in self._report.findings]
        return whole_run(self._rules, self._invocation(), self._repository, results)

    def _invocation(self) -> dict[str, Any]:
        notes = [("error", text) for text in self._report.errors]
        notes += [("warning", text) for text in self._report.notices]
        invocation: dict[str, Any] = {"executionSuccessful": not self._report.errors}
        if notes:
            invocation["toolExecutionNotifications"] = [
                {"level": level, "message": {"text": text}} for level, text in notes
            ]
        return invocation

    def _result(self, finding: Finding) -> dict[str, Any]:
        place = self._place(finding.filename, file_span(finding, finding.span))
        shown = {**place, **self._context(finding)}
        result: dict[str, Any] = {
            "ruleId": finding.code,
            "ruleIndex": self._numbers[finding.code],
            "level": LEVELS[finding.severity],
            "rank": _RANKS[finding.confidence],
            "message": {"text": _message(finding)},
            "locations": [{"physicalLocation": shown}],
            "partialFingerprints": self._fingerprints(finding),
        }
        if self._report.left_out:  # there is a baseline, of which nothing is among these
            result["baselineState"] = "new"
        chain = [self._link(evidence, finding) for evidence in finding.evidence]
        if chain:
            end = {"physicalLocation": place, "message": {"text": _plain(finding.message)}}
            flow = [{"location": location} for location in (*chain, end)]
            result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
            result["relatedLocations"] = [{"id": number, **location} for number, location in enumerate(chain, 1)]
        fix = file_fix(finding)
        if fix is not None:
            result["fixes"] = [self._fix(fix, finding.filename)]
        message = message_of(finding)
        result["properties"] = {
            "severity": finding.severity.value,
            "what": message.what,
            "why": message.why,
            "cost": message.cost.line if message.cost is not None else "",
            "fix": message.fix.text if message.fix is not None else "",
            "confidence": message.confidence.value,
            "doubts": [doubt.to_json() for doubt in message.doubts],
            "url": message.url,
        }
        if finding.cells is not None:
            within = place_within(finding, finding.span.start)
            result["properties"] |= {"cell": within.cell, "row": within.row}
        if finding.measured is not None:
            result["properties"]["measured"] = finding.measured.to_json()
        return result

    def _fingerprints(self, finding: Finding) -> dict[str, str]:
        found = {"torchmemlint/v1": finding.fingerprint} if finding.fingerprint else {}
        if finding.cells is not None:  # of the megabytes of a notebook's JSON only what uploads it makes them
            return found
        hashes = self._hashes.get(finding.filename)
        if hashes is None:
            lines = self._report.sources(finding.filename)
            ends = _ends_with_newline(finding.filename)
            hashes = line_hashes([*lines, ""] if ends else lines) if lines else []
            self._hashes[finding.filename] = hashes
        row = finding.span.start.row
        return {"primaryLocationLineHash": hashes[row - 1], **found} if row <= len(hashes) else found

    def _link(self, evidence: Evidence, finding: Finding) -> dict[str, Any]:
        place = self._place(evidence.filename or finding.filename, evidence_span(evidence, finding))
        return {"physicalLocation": place, "message": {"text": _plain(evidence.message)}}

    def _fix(self, fix: Fix, filename: Path) -> dict[str, Any]:
        change = {
            "artifactLocation": self._artifact(filename),
            "replacements": [_replacement(edit) for edit in sorted(set(fix.edits))],
        }
        text = f"{_plain(fix.message)} ({Repair(fix.message, fix.applicability).trust})"
        return {"description": {"text": text}, "artifactChanges": [change]}

    def _place(self, filename: Path, span: Span) -> dict[str, Any]:
        return {"artifactLocation": self._artifact(filename), "region": _region(span)}

    def _context(self, finding: Finding) -> dict[str, Any]:
        """The code around a finding, for readers who do not have the file."""
        if finding.cells is not None:  # that would not be what stands in the file
            return {}
        source = self._report.sources(finding.filename)
        rows = [row for row in rows_shown(source, finding.span) if row]
        if not rows or max(rows) - min(rows) > _LONGEST:
            return {}
        first, last = min(rows), max(rows)
        text = "\n".join(source[first - 1 : last])
        exact = {**_region(finding.span), "snippet": {"text": finding.span.text(source)}}
        return {"region": exact, "contextRegion": {"startLine": first, "endLine": last, "snippet": {"text": text}}}

    def _artifact(self, filename: Path) -> dict[str, str]:
        return location(absolute_path(filename, self._root), self._repository)


def whole_run(
    rules: list[dict[str, Any]], invocation: dict[str, Any], repository: Path, results: list[dict[str, Any]]
) -> dict[str, Any]:
    """A run of torchmemlint with these results."""
    driver = {
        "name": "torchmemlint",
        "version": __version__,
        "semanticVersion": __version__,
        "informationUri": "https://torchmemlint.readthedocs.io",
        "rules": rules,
    }
    top = {"uri": f"{repository.as_uri().rstrip('/')}/", "description": {"text": "The repository."}}
    return {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "originalUriBaseIds": {BASE: top},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }


def location(path: PurePath, repository: PurePath) -> dict[str, str]:
    """Where a file is: from the top of the repository; elsewhere as a whole."""
    try:
        relative = path.relative_to(repository)
    except ValueError:
        if path.is_absolute():
            return {"uri": path.as_uri()}
        relative = path
    return {"uri": quote(relative.as_posix().encode("utf-8", "surrogateescape")), "uriBaseId": BASE}


def _ends_with_newline(path: Path) -> bool:
    """Does a file end with a newline, as they should? Its lines do not tell."""
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) in b"\r\n"
    except OSError:
        return True


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.start.row,
        "startColumn": span.start.column,
        "endLine": span.end.row,
        "endColumn": span.end.column,
    }


def _replacement(edit: Edit) -> dict[str, Any]:
    # Nothing that is inserted might be left out, but reviewdog would stumble.
    return {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.content}}


def _message(finding: Finding) -> str:
    """What is found, why it is not certain, what it costs, and what only a human can do about it."""
    message = message_of(finding)
    parts = [with_cell(message.what, finding)]
    if message.doubts:
        parts.append(_begun(message.caveat))
    if message.cost is not None:
        parts.append(_begun(message.cost.line))
    if message.fix is not None and file_fix(finding) is None:
        parts.append(f"Help: {message.fix.text}")
    return ". ".join(_plain(part).rstrip(".") for part in parts) + ("." if len(parts) > 1 else "")


def _begun(text: str) -> str:
    """Text as a sentence begins."""
    return text[:1].upper() + text[1:]


def _plain(text: str) -> str:
    """Text in which nothing is a link."""
    return _LINK.sub(r"\\[", " ".join(text.split()))
