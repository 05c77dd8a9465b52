"""What the bars of the page show: findings by rule and by folder, and what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from torchmemlint.findings import Finding, Severity
from torchmemlint.immutable import immutable
from torchmemlint.report.columns import show
from torchmemlint.report.places import place, printed_path, shown_place
from torchmemlint.sizes import format_size

MOST = 15  # bars of one chart; the rest is counted in a last one
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.ADVICE)


@immutable()
class Part:
    """A stretch of a bar, in percent of the chart's width."""

    severity: str
    start: float
    width: float


@immutable()
class Bar:
    """One line of a chart. What `value` names is filtered by, in the field `Chart.field`."""

    label: str
    number: str
    parts: tuple[Part, ...]
    value: str = ""
    title: str = ""  # all of what the label had to leave out


@immutable()
class Chart:
    """Bars under a heading."""

    title: str
    unit: str
    bars: tuple[Bar, ...]
    field: str = ""


def charts(findings: Sequence[Finding], root: Path) -> list[Chart]:
    """Those that have something to show."""
    rules = {finding.code: f"{finding.code} {finding.name}" for finding in findings}
    by_rule = counted(((finding.code, finding.severity) for finding in findings), rules)
    by_folder = counted(((folder_of(finding, root), finding.severity) for finding in findings), {})
    found = [
        Chart("Findings by rule", "findings", by_rule, "rule"),
        Chart("Findings by folder", "findings", by_folder, "folder"),
        Chart("Measured cost, per step", "bytes per step", _costs(findings, root, "per_step")),
        Chart("Measured cost, at the peak", "bytes", _costs(findings, root, "peak")),
    ]
    return [chart for chart in found if chart.bars]


def folder_of(finding: Finding, root: Path) -> str:
    """The folder of a finding's file, as read from `root`."""
    return PurePath(printed_path(finding.filename, root)).parent.as_posix()


def counted(found: Iterable[tuple[str, Severity]], labels: dict[str, str]) -> tuple[Bar, ...]:
    """A bar for each value, stacked by severity, the longest first."""
    counts: dict[str, Counter[Severity]] = {}
    for value, severity in found:
        counts.setdefault(value, Counter())[severity] += 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))
    if not ranked:
        return ()
    most = ranked[0][1].total()
    head, rest = ranked[:MOST], ranked[MOST:]
    bars = [Bar(labels.get(value, value), str(count.total()), _stacked(count, most), value) for value, count in head]
    if rest:
        others = sum((count for _, count in rest), Counter[Severity]())
        bars.append(Bar(f"{len(rest)} more", str(others.total()), _stacked(others, max(most, others.total()))))
    return tuple(bars)


def _stacked(count: Counter[Severity], most: int) -> tuple[Part, ...]:
    parts: list[Part] = []
    start = 0.0
    for severity in _ORDER:
        if count[severity]:
            width = round(100 * count[severity] / most, 2)
            parts.append(Part(severity.value, round(start, 2), width))
            start += width
    return tuple(parts)


def _costs(findings: Iterable[Finding], root: Path, kind: str) -> tuple[Bar, ...]:
    found = [(nbytes, finding) for finding in findings if (nbytes := _cost(finding, kind)) > 0]
    found.sort(key=lambda item: -item[0])
    return tuple(
        Bar(
            f"{finding.code} {show(finding.filename.name).text}:{place(finding, finding.span.start).brief}",
            format_size(nbytes),
            (Part(finding.severity.value, 0.0, round(100 * nbytes / found[0][0], 2)),),
            title=shown_place(finding.filename, place(finding, finding.span.start).brief, root),
        )
        for nbytes, finding in found[:MOST]
    )


def _cost(finding: Finding, kind: str) -> float:
    told = finding.measured
    if told is None:
        return 0.0
    per_step = max(told.per_step or 0, told.line_per_step or 0, told.loop_per_step or 0)
    if kind == "per_step":
        return per_step
    return 0.0 if per_step else float(told.peak or 0)  # growth hides the peak, which grows with it
