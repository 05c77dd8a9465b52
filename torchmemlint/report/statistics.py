"""How often each rule spoke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Severity
from torchmemlint.immutable import immutable
from torchmemlint.report.paint import Paint


@immutable()
class Row:
    """One rule's figures."""

    code: str
    name: str
    severity: Severity  # the highest that it gave
    count: int
    fixable: int  # of those, how many `--fix` (with the options of the run) would remove


def rows(report: RunReport) -> list[Row]:
    """The rules that spoke, the most frequent first."""
    counts = Counter(finding.code for finding in report.findings)
    fixable = Counter(finding.code for finding in report.fixable(unsafe=report.unsafe_fixes))
    severities: dict[str, Severity] = {}
    names: dict[str, str] = {}
    for finding in report.findings:
        names[finding.code] = finding.name
        known = severities.get(finding.code, finding.severity)
        severities[finding.code] = max(known, finding.severity, key=lambda severity: severity.rank)
    found = [Row(code, names[code], severities[code], count, fixable[code]) for code, count in counts.items()]
    return sorted(found, key=lambda row: (-row.count, row.code))


def lines(report: RunReport, paint: Paint) -> Iterator[str]:
    """A table: count, code, whether all (`[*]`) or some (`[-]`) are fixable, name."""
    table = rows(report)
    counts = max((len(str(row.count)) for row in table), default=0)
    codes = max((len(row.code) for row in table), default=0)
    for row in table:
        sign = "[*]" if row.fixable == row.count else "[-]" if row.fixable else "[ ]"
        code = paint.severity(row.severity, row.code) + " " * (codes - len(row.code))
        yield f"{paint.strong(f'{row.count:>{counts}}')}  {code}  {paint.fixable(sign)} {row.name}"


def objects(report: RunReport) -> list[dict[str, str | int]]:
    """The same for JSON."""
    return [
        {"code": row.code, "name": row.name, "severity": row.severity.value, "count": row.count, "fixable": row.fixable}
        for row in rows(report)
    ]
