"""A census for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from torchmemlint.census.counting import Census, Rule
from torchmemlint.census.labels import Precision


def table(census: Census, precision: Mapping[str, Precision]) -> Table:
    """A row for each rule; precision where somebody has read some of its findings."""
    found = Table(box=None, header_style="bold", pad_edge=False, caption=_caption(census), caption_justify="left")
    found.add_column("rule", no_wrap=True)
    for title in ("findings", "errors", "warnings", "advice", "projects", "share", "per 1,000 lines"):
        found.add_column(title, justify="right")
    if precision:
        found.add_column("true", justify="right")
        found.add_column("precision (95%)", justify="right", no_wrap=True)
    for rule in census.rules():
        found.add_row(f"{rule.code} {rule.name}", *cells(rule, precision))
    return found


def cells(rule: Rule, precision: Mapping[str, Precision]) -> list[str]:
    """What stands in a rule's row after its name."""
    numbers = (rule.findings, *rule.severities.values(), rule.projects)
    rate = "" if rule.per_thousand_lines is None else f"{rule.per_thousand_lines:.3f}"
    read = _read(precision.get(rule.code)) if precision else ()
    return [*(f"{number:,}" for number in numbers), f"{rule.prevalence:.1%}", rate, *read]


def _percent(one: Precision) -> str:
    """`88% (69-96%)`; "" where nothing was read."""
    if one.share is None or one.interval is None:
        return ""
    low, high = one.interval
    return f"{one.share:.0%} ({100 * low:.0f}-{100 * high:.0f}%)"


def _read(one: Precision | None) -> tuple[str, str]:
    return ("", "") if one is None else (f"{one.true}/{one.true + one.false}", _percent(one))


def _caption(census: Census) -> str:
    lines = f", {census.torch_lines:,} lines" if census.torch_lines is not None else ""
    many = "" if len(census.projects) == 1 else "s"
    return (
        f"{len(census.found):,} findings in {len(census.projects):,} project{many}, "
        f"{census.looked_at:,} of which mention torch{lines}"
    )
