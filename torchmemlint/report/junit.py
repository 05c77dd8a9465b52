"""JUnit's XML, which CI services show as test results: a suite for each file, a failed test for each finding.

What fails no run, which is advice unless `--fail-on` says otherwise, is a skipped test. Where nothing is found, there
is one test, which passes: Jenkins takes a report without tests for a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path, PurePath
from xml.etree import ElementTree

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding
from torchmemlint.report.message import message_of
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import (
    elsewhere,
    evidence_place,
    place,
    printed_path,
    shown_path,
    shown_place,
)

_UNREADABLE = "TML000"
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The document, in ASCII, so that it survives any stream."""
    suites = ElementTree.Element("testsuites", name="torchmemlint")
    for filename, found in groupby(report.findings, key=lambda finding: finding.filename):
        path = shown_path(filename, root)
        _add_suite(suites, path, [_case(finding, path, report, root) for finding in found])
    internal = [_failed_case("internal error", "torchmemlint", "error", text, text) for text in report.errors]
    if internal or not len(suites):
        nothing = ElementTree.Element("testcase", name="nothing found", classname="torchmemlint")
        _add_suite(suites, "torchmemlint", internal or [nothing])
    for key in ("tests", "failures", "errors"):
        suites.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    ElementTree.indent(suites)
    yield ElementTree.tostring(suites, encoding="us-ascii", xml_declaration=True).decode("ascii")


def _add_suite(suites: ElementTree.Element, name: str, cases: list[ElementTree.Element]) -> None:
    counts = {"tests": len(cases)}
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counts[key] = sum(case.find(tag) is not None for case in cases)
    suite = ElementTree.SubElement(suites, "testsuite", name=_xml(name))
    for key, count in counts.items():
        suite.set(key, str(count))
    suite.extend(cases)


def _case(finding: Finding, path: str, report: RunReport, root: Path) -> ElementTree.Element:
    where = place(finding, finding.span.start).text
    kind = "error" if finding.code == _UNREADABLE else "failure" if report.fails(finding) else "skipped"
    name = f"{finding.code} {finding.name} ({where})"
    text = "\n".join(_details(finding, printed_path(finding.filename, root), root))
    return _failed_case(name, _class_name(path), kind, finding.message, text, finding.severity.value)


def _failed_case(
    name: str, class_name: str, kind: str, message: str, text: str, severity: str = "error"
) -> ElementTree.Element:
    case = ElementTree.Element("testcase", name=_xml(name), classname=_xml(class_name))
    outcome = ElementTree.SubElement(case, kind, type=severity, message=_xml(" ".join(message.split())))
    outcome.text = _xml(text)
    return case


def _class_name(path: str) -> str:
    """`src/train.py` as `src.train`: what stands before the last dot is shown as the package."""
    pure = PurePath(path)
    return ".".join(part for part in pure.with_suffix("").parts if part not in (pure.anchor, ".."))


def _details(finding: Finding, path: str, root: Path) -> Iterator[str]:
    yield f"{path}:{place(finding, finding.span.start).text}: {finding.code} {finding.message}"
    for evidence in finding.evidence:
        other = elsewhere(evidence, finding, root) or finding.filename
        row = evidence_place(evidence, finding, evidence.span.start).brief
        yield f"  {shown_place(other, row, root)}: {evidence.message}"
    yield from (note.line for note in message_of(finding).notes())


def _xml(text: str) -> str:
    """The text without what XML has no form for."""
    return _NO_XML.sub("\ufffd", text)
