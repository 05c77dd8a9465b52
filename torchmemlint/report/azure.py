"""Logging commands of Azure Pipelines, which lists them as issues of the run and beside the code.

`##vso[task.logissue type=error;sourcepath=…;linenumber=…;columnnumber=…;code=…;]message`. Azure knows errors and
warnings: advice is a warning that says so. Paths are those of the repository, wherever in it the linter was started.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding, Severity
from torchmemlint.report.columns import show
from torchmemlint.report.github import annotation_text
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import file_span, repository_path

# As Microsoft's azure-pipelines-task-lib writes them; in a property, what would end it or the command as well.
_ESCAPES = {"%": "%AZP25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = {**_ESCAPES, "]": "%5D", ";": "%3B"}


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """A command for each finding."""
    for finding in report.findings:
        start = file_span(finding, finding.span).start
        properties = {
            "type": "error" if finding.severity is Severity.ERROR else "warning",
            "sourcepath": repository_path(finding.filename, root),
            "linenumber": str(start.row),
            "columnnumber": str(start.column),
            "code": finding.code,
        }
        said = "".join(f"{key}={_escaped(value, _IN_PROPERTIES)};" for key, value in properties.items())
        yield f"##vso[task.logissue {said}]{_escaped(_text(finding, root), _ESCAPES)}"


def _text(finding: Finding, root: Path) -> str:
    text = f"{finding.name}: {annotation_text(finding, root)}"
    return f"advice: {text}" if finding.severity is Severity.ADVICE else text


def _escaped(text: str, signs: dict[str, str]) -> str:
    return show("".join(signs.get(character, character) for character in text)).text  # somebody may look at the log
