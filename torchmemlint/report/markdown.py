"""Markdown as GitHub and GitLab show it: a table, for comments and the summaries of jobs. Advice is folded away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding, Severity
from torchmemlint.report import summary
from torchmemlint.report.columns import show
from torchmemlint.report.message import rule_url
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import asides, one_line, place, shown_path

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~&#$]")
_MENTION = re.compile(r"@(?=\w)")
_TICKS = re.compile("`+")


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """A heading, what the closing lines say, and the findings."""
    plain = Paint(on=False)
    yield "## torchmemlint"
    yield ""
    for line in summary.lines(report, root, plain):
        yield f"{inline(line)}  "  # two blanks end the line
    severe = [finding for finding in report.findings if finding.severity is not Severity.ADVICE]
    advice = [finding for finding in report.findings if finding.severity is Severity.ADVICE]
    yield from _table(severe, root)
    if advice:
        yield ""
        yield f"<details><summary>Advice: {len(advice)}</summary>"
        yield from _table(advice, root)
        yield ""
        yield "</details>"


def _table(findings: Sequence[Finding], root: Path) -> Iterator[str]:
    if not findings:
        return
    yield ""
    yield "| place | rule | severity | message |"
    yield "|---|---|---|---|"
    for finding in findings:
        where = code(f"{shown_path(finding.filename, root)}:{place(finding, finding.span.start).text}")
        rule = f"[{finding.code}]({rule_url(finding.code)}) {inline(finding.name)}"
        message = " ".join((finding.message, *asides(finding, root)))
        yield f"| {where} | {rule} | {finding.severity.value} | {inline(message)} |"


def inline(text: str) -> str:
    """A line of a message for a cell: what stands between backticks stays code, all else is text and nothing more."""
    line = one_line(text)
    parts = line.split("`")
    if len(parts) % 2 == 0 or not all(part.strip() for part in parts[1::2]):  # not pairs
        return _escaped(line)
    return "".join(code(part) if number % 2 else _escaped(part) for number, part in enumerate(parts))


def code(text: str) -> str:
    """A code span for a cell, whatever is in the text."""
    shown = show(text).text.replace("|", r"\|")
    fence = "`" * (max(map(len, _TICKS.findall(shown)), default=0) + 1)
    blank = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{blank}{shown}{blank}{fence}"


def _escaped(text: str) -> str:
    return _MENTION.sub("@<!-- -->", _SPECIAL.sub(r"\\\g<0>", text))  # an empty comment: nobody is called
