"""The order in which the format for reading shows findings: the most costly first, advice folded at the end.

What a rule says again and again of one file is folded as well: after a few findings in full, a line for each.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding, Severity
from torchmemlint.report.columns import pad, text_width
from torchmemlint.report.message import message_of
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import mark, one_line, place, printed_path, shown_place

IN_FULL = 3  # findings of one rule in one file
LINES = 5  # of folded advice, at most; the rest is counted
_CODE = 1000  # lines, for one more of advice
_ABOUT_TIME = frozenset({"TML401", "TML402", "TML403", "TML404"})  # what they cost is mostly not memory
_ROWS = 6  # named in one line
_COLUMNS = 64  # for the places that lines of folded advice begin with; a longer one moves its own line only


def shown(report: RunReport) -> Iterator[tuple[list[Finding], list[Finding]]]:
    """The findings by severity, then by what was measured, then by rule and place: those of one rule in one file, in
    full and in a line each.

    Advice is not among them where the report folds it, unless a run of the program has shown that it costs something.
    """
    found = [finding for finding in report.findings if not _is_folded(finding, report)]
    found.sort(key=lambda finding: (-finding.severity.rank, -_measured(finding), finding.code))  # stable
    most = IN_FULL if report.folds else len(found)
    for _, group in groupby(found, key=lambda finding: (finding.code, finding.filename)):
        same = list(group)
        # One line would say that there is one more, and not which.
        yield (same, []) if len(same) <= most + 1 else (same[:most], same[most:])


def by_worth(findings: Iterable[Finding]) -> list[Finding]:
    """The findings by severity, the worst first, and then as they come: by file and place."""
    return sorted(findings, key=lambda finding: -finding.severity.rank)


def repeated_lines(findings: Sequence[Finding], root: Path, paint: Paint, *, unsafe: bool) -> Iterator[str]:
    """What a rule says again of a file, a line for each finding."""
    first = findings[0]
    rule = f"{paint.severity(first.severity, first.code)} {paint.strong(first.name)}"
    yield f"{rule}, {len(findings)} more in this file (--no-fold shows all in full):"
    for finding in findings:
        where = f"{printed_path(finding.filename, root)}:{place(finding, finding.span.start).text}"
        sign = paint.fixable(mark(finding, unsafe=unsafe))
        asides = map(paint.faint, message_of(finding).asides)
        yield "  " + " ".join(part for part in (where, sign, one_line(finding.message), *asides) if part)
    yield ""


def folded(report: RunReport) -> list[list[Finding]]:
    """Advice by rule, in the order of files; that about the most bytes first, that about loading last."""
    groups: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if _is_folded(finding, report):
            groups.setdefault(finding.code, []).append(finding)
    return sorted(groups.values(), key=lambda group: (-_bytes(group), group[0].code in _ABOUT_TIME, -len(group)))


def _bytes(findings: Sequence[Finding]) -> int:
    return sum(finding.amount.nbytes for finding in findings if finding.amount is not None)


def room(report: RunReport) -> int:
    """Return how many lines of advice there is room for: one for each thousand of what is spoken of."""
    return min(LINES, max(1, sum(len(report.sources(path)) for path in {f.filename for f in report.findings}) // _CODE))


def folded_lines(groups: Sequence[Sequence[Finding]], root: Path, paint: Paint, most: int = LINES) -> Iterator[str]:
    """An entry for each rule: where it speaks first, where else, and what it says there; only a few."""
    if not groups:
        return
    yield f"{paint.severity(Severity.ADVICE, 'Advice')}, one example for each rule (--no-fold shows all):"
    head = groups if len(groups) == most + 1 else groups[:most]  # one line would say that there is one more, not which
    places = [shown_place(first.filename, place(first, first.span.start).brief, root) for first, *_ in head]
    width = max((text_width(where) for where in places if text_width(where) <= _COLUMNS), default=0)
    for (first, *others), where in zip(head, places, strict=True):
        rule = f"{paint.severity(Severity.ADVICE, first.code)} {first.name}"
        more = _others(first, others)
        length = 2 + max(width, text_width(where)) + 2 + len(f"{first.code} {first.name}{more}")
        if paint.width and length > paint.width:
            rule, more = f"{rule}{paint.faint(',')}" if more else rule, more.removeprefix(", ")
            yield f"  {paint.strong(pad(where, width))}  {rule}"
            yield from ([f"    {paint.faint(more)}"] if more else [])
        else:
            yield f"  {paint.strong(pad(where, width))}  {rule}{paint.faint(more)}"
        message = " ".join((one_line(first.message), *message_of(first).asides))
        parts = textwrap.wrap(message, max(paint.width - 4, 20)) if paint.width else [message]
        yield from (f"    {part}" for part in parts)
    rest = groups[len(head) :]
    if rest:
        yield f"  … and {sum(map(len, rest))} more from {len(rest)} other rule{'' if len(rest) == 1 else 's'}"
    yield f"  {paint.strong('learn more')}: `torchmemlint rule {head[0][0].code}` explains a rule"
    yield ""


def _others(first: Finding, findings: Sequence[Finding]) -> str:
    """`, and 11 more: lines 52, 61, 77, …`; in a notebook `: cell 4:2, cell 7:1`; `, and 68 more in 15 files`."""
    if not findings:
        return ""
    files = {finding.filename for finding in findings}
    if files != {first.filename}:
        return f", and {len(findings)} more in {len(files)} file{'' if len(files) == 1 else 's'}"
    rows = list(dict.fromkeys(place(finding, finding.span.start).brief for finding in findings))
    dots = ", …" if len(rows) > _ROWS else ""
    many = "" if first.cells is not None else f"line{'' if len(rows) == 1 else 's'} "
    return f", and {len(findings)} more: {many}{', '.join(rows[:_ROWS])}{dots}"


def _is_folded(finding: Finding, report: RunReport) -> bool:
    return report.folds and finding.severity is Severity.ADVICE and not _measured(finding)


def _measured(finding: Finding) -> float:
    """The bytes that a run of the program found it to cost, those of every step before those of the peak."""
    return 0.0 if finding.measured is None else finding.measured.weight
