"""Workflow commands of GitHub Actions, which shows them as annotations beside the code of a pull request.

`::error file=…,line=…,col=…,endLine=…,endColumn=…,title=…::message`. Paths are those of the repository, wherever in it
the linter was started.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding, Severity
from torchmemlint.report.columns import show
from torchmemlint.report.message import message_of
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import elsewhere, evidence_place, file_span, one_line, place, repository_path

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice"}


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """A command for each finding."""
    for finding in report.findings:
        properties = ",".join(f"{key}={_property(value)}" for key, value in _properties(finding, root).items())
        yield f"::{_COMMANDS[finding.severity]} {properties}::{_data(annotation_text(finding, root))}"


def _properties(finding: Finding, root: Path) -> dict[str, str]:
    span = file_span(finding, finding.span)
    start, end = span.start, span.end
    # Columns of several lines are refused by the runner, with a warning in its log.
    columns = {"col": str(start.column), "endColumn": str(end.column)} if start.row == end.row else {}
    return {
        "file": repository_path(finding.filename, root),
        "line": str(start.row),
        "endLine": str(end.row),
        **columns,
        "title": f"{finding.code} {finding.name}",
    }


def annotation_text(finding: Finding, root: Path) -> str:
    """What is found, what led to it, and the notes, a line each: services show an annotation's text as it is."""
    parts = [one_line(finding.message)]
    if finding.cells is not None:
        parts[0] = f"{place(finding, finding.span.start).brief}: {parts[0]}"
    for evidence in finding.evidence:
        other = elsewhere(evidence, finding, root)
        row = evidence_place(evidence, finding, evidence.span.start).brief
        where = (
            f"{repository_path(other, root)}:{row}" if other is not None else row if "cell" in row else f"line {row}"
        )
        parts.append(f"{where}: {one_line(evidence.message)}")
    return "\n".join((*parts, *(one_line(note.line) for note in message_of(finding).notes())))


def _data(text: str) -> str:
    """A message: only what would end the line is escaped, and the sign that escapes."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return show(text).text  # somebody may look at the log


def _property(text: str) -> str:
    """A property's value: also what would end it."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
