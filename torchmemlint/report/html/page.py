"""Fills the page."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from torchmemlint import __version__
from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding
from torchmemlint.fixes.eligibility import eligible
from torchmemlint.report import order, summary
from torchmemlint.report.changes import hunks
from torchmemlint.report.columns import show
from torchmemlint.report.full import in_its_cell, link
from torchmemlint.report.html import charts
from torchmemlint.report.message import message_of
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import place, printed_path

SEVERITIES = ("error", "warning", "advice")


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The page, in ASCII, so that it survives any stream."""
    import jinja2
    from markupsafe import Markup

    from torchmemlint.report.html import frames

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("torchmemlint.report.html", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["message"] = frames.message
    style, script = part("page.css"), part("page.js")
    severities = Counter(finding.severity.value for finding in report.findings)
    rules = {finding.code: finding.name for finding in report.findings}
    text = environment.get_template("page.html.jinja").render(
        version=__version__,
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; style-src {hash_of(style)}; script-src {hash_of(script)}; base-uri 'none'",
        closing=list(summary.lines(report, root, Paint(on=False))),
        counts=[(severity, severities[severity]) for severity in SEVERITIES],
        checked=report.files_checked,
        fixable=len(report.fixable(unsafe=report.unsafe_fixes)),
        charts=charts.charts(report.findings, root),
        rules=sorted(rules.items()),
        folders=sorted({charts.folder_of(finding, root) for finding in report.findings}),
        files=[
            (printed_path(filename, root), severity.value, [_finding(finding, report, root) for finding in found])
            for (severity, filename), found in groupby(
                order.by_worth(report.findings), key=lambda finding: (finding.severity, finding.filename)
            )
        ],
        notes=[*report.errors, *report.notices],
    )
    yield text.rstrip().encode("utf-8", "replace").decode("utf-8").encode("ascii", "xmlcharrefreplace").decode("ascii")


def _finding(finding: Finding, report: RunReport, root: Path) -> dict[str, Any]:
    from torchmemlint.report.html import frames

    where = place(finding, finding.span.start)
    chain = [link(evidence, finding, report, root) for evidence in finding.evidence]
    folder = charts.folder_of(finding, root)
    can_fix = eligible(finding, unsafe=report.unsafe_fixes)
    filename = finding.filename
    finding, source = in_its_cell(finding, report.sources(finding.filename))
    changes = hunks(source, finding.fix.edits) if finding.fix is not None else []
    message = message_of(finding)
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "confidence": message.confidence.value if message.doubts else "",
        "url": message.url,
        "message": message.what,
        "place": f"{printed_path(filename, root)}:{where.text}",
        "row": where.text,
        "folder": folder,
        "fixable": can_fix,
        "frame": list(frames.frame(source, finding.span)),
        "evidence": chain,
        "notes": list(message.notes(url=False)),
        "changes": [(sign, show(line).text) for hunk in changes for sign, line in _signed(hunk.old, hunk.new)],
    }


def _signed(old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield from (("-", line) for line in old)
    yield from (("+", line) for line in new)


def part(name: str) -> str:
    """A file that is put into the page."""
    return (files("torchmemlint.report.html") / name).read_text(encoding="ascii")


def hash_of(text: str) -> str:
    """The page names what may run and style it by its hash, so that nothing else does, whatever a message holds."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
