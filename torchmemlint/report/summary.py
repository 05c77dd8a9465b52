"""The closing lines of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchmemlint.engine.run import LeftOut, RunReport
from torchmemlint.findings import Severity
from torchmemlint.report.columns import show
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import place, printed_path

_SEVERITIES = (
    (Severity.ERROR, "error", "errors"),
    (Severity.WARNING, "warning", "warnings"),
    (Severity.ADVICE, "advice", "advice"),
)


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """What was found, what was fixed, what could be."""
    yield from not_fixed_lines(report, root, paint)
    fixed = sum(len(one.applied) for one in report.fixed)
    if fixed:
        verb = "Fixed" if report.fixes_applied_to_disk else "Would fix"
        files = sum(bool(one.applied) for one in report.fixed)
        yield f"{verb} {_count(fixed, 'problem')} in {_count(files, 'file')}{':' if report.show_fixes else '.'}"
        if report.show_fixes:
            yield from fixed_lines(report, root)
    if not report.findings and report.errors:
        yield "Not everything could be checked."
        yield from _not_shown(report)
        return
    if not report.findings:
        if not fixed or report.fixes_applied_to_disk:
            passed = "No new problems." if any(one.count for one in report.left_out) else "All checks passed!"
            yield paint.added(passed) if not fixed else "Nothing is left."
        yield from _not_shown(report)
        return
    counts = Counter(finding.severity for finding in report.findings)
    parts = [
        paint.severity(severity, f"{counts[severity]} {one if counts[severity] == 1 else many}")
        for severity, one, many in _SEVERITIES
        if counts[severity]
    ]
    files = len({finding.filename for finding in report.findings})
    yield f"Found {_count(len(report.findings), 'problem')} ({', '.join(parts)}) in {_count(files, 'file')}."
    yield from _fixable(report, paint)
    yield from _not_shown(report)


def fixed_lines(report: RunReport, root: Path) -> Iterator[str]:
    """What was fixed: each file, and under it how often each rule's findings were."""
    for one in report.fixed:
        if not one.applied:
            continue
        yield f"- {printed_path(one.filename, root)}:"
        counts = Counter((finding.code, finding.name) for finding in one.applied)
        width = max(len(str(count)) for count in counts.values())
        for (code, name), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            yield f"    {count:>{width}}  {code} {name}"


def _not_shown(report: RunReport) -> Iterator[str]:
    if report.unsure:
        are, them = ("is", "it") if report.unsure == 1 else ("are", "them")
        count = _count(report.unsure, "less certain finding")
        yield f"{count} {are} not shown (--confidence possible shows {them})."
    if report.partly:
        files, them = _count(len(report.partly), "file"), "it" if len(report.partly) == 1 else "them"
        yield f"{files} had more code than could be followed: there may be more to find (-v names {them})."
    for one in _together(report.left_out):
        if one.count:
            yield f"Left out {_count(one.count, 'problem')} {one.where}."
        if one.gone:
            what = "entry there no longer occurs" if one.gone == 1 else "entries there no longer occur"
            yield f"{one.gone} {what}: `torchmemlint baseline update` drops {'it' if one.gone == 1 else 'them'}."


def _together(left_out: Sequence[LeftOut]) -> Iterator[LeftOut]:
    """Those that are said to be in the same place, as one: each configuration may have a baseline of that name."""
    groups: dict[str, list[LeftOut]] = {}
    for one in left_out:
        groups.setdefault(one.where, []).append(one)
    for where, found in groups.items():
        words = where if len(found) == 1 else where.replace("in ", f"in {len(found)} files ", 1)
        yield LeftOut(sum(one.count for one in found), words, sum(one.gone for one in found))


def _fixable(report: RunReport, paint: Paint) -> Iterator[str]:
    now = len(report.fixable(unsafe=report.unsafe_fixes))
    more = len(report.fixable(unsafe=True)) - now
    if now:
        also = f" ({more} more with --unsafe-fixes)" if more else ""
        yield f"{paint.fixable('[*]')} {now} fixable with --fix{also}."
    elif more:
        yield f"{paint.fixable('[-]')} {more} fixable with --fix --unsafe-fixes."


def not_fixed_lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """What was not fixed, though that was asked for, each with the reason."""
    for one in report.fixed:
        for finding, reason in one.rolled_back:
            where = f"{printed_path(one.filename, root)}:{place(finding, finding.span.start).text}"
            why = show(" ".join(reason.split())).text
            yield f"{paint.strong('Not fixed')} {where}: {finding.code}: {why}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
