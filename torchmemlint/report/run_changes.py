"""The report of `torchmemlint diff`: for the terminal, and as Markdown for a pull request's comment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, TextIO

from rich.text import Text

from torchmemlint.report.rich_text import rows, write_texts
from torchmemlint.runtime.budget import Budget
from torchmemlint.runtime.changes import Changes, Function, Usage
from torchmemlint.sizes import format_size

_FUNCTIONS = 8


def write_changes(changes: Changes, stream: TextIO, *, color: bool) -> None:
    """Write what changed for people."""
    write_texts(_lines(changes), stream, color=color)


def _lines(changes: Changes) -> Iterator[Text]:
    before, after = changes.before, changes.after
    yield Text.assemble(("diff ", "bold"), after.program)
    if before.conditions != after.conditions:
        yield Text.assemble(
            ("note: ", "bold yellow"), f"measured differently: {before.conditions} / {after.conditions}"
        )
    yield from rows(_totals(changes))
    for title, found in _tables(changes):
        yield Text()
        yield Text(title, style="bold")
        yield from rows((_delta(was, now), f"{function}  {_both(was, now)}") for function, was, now in found)
    yield Text()
    worse = changes.reasons
    yield Text(f"Worse: {', '.join(worse)}." if worse else "No worse.", style="bold red" if worse else "bold green")


def markdown(changes: Changes) -> str:
    """What changed, as GitHub's Markdown."""
    worse = changes.reasons
    verdict = f"worse ({', '.join(worse)})" if worse else "no worse"
    told = [f"**GPU memory of `{changes.after.program}`: {verdict}**", ""]
    told += ["| | before | after | change |", "|---|--:|--:|--:|"]
    told += [_row(name, was, now) for name, was, now in _figures(changes)]
    for title, found in _tables(changes):
        told += ["", f"{title}:", "", "| function | before | after | change |", "|---|--:|--:|--:|"]
        told += [_row(f"`{function}`", was, now) for function, was, now in found]
    told += ["", f"<sub>{changes.after.conditions}</sub>", ""]
    return "\n".join(told)


Held = tuple[Usage, Budget, tuple[str, ...]]
"""A run, its budget, and the limits that it is over."""


def write_budgets(checked: Iterable[Held], stream: TextIO, *, color: bool) -> None:
    """Write what runs take of their budgets."""
    write_texts(_of_budgets(checked), stream, color=color)


def budgets_json(checked: Iterable[Held]) -> dict[str, Any]:
    """The same as JSON's types."""
    programs = [
        {
            "program": usage.program,
            "over": list(over),
            "peak": usage.peak,
            "growth": usage.steepest,
            "budget": asdict(one),
        }
        for usage, one, over in checked
    ]
    return {"over": any(one["over"] for one in programs), "programs": programs}


def _of_budgets(checked: Iterable[Held]) -> Iterator[Text]:
    for usage, budget, over in checked:
        verdict = (f"over budget: {', '.join(over)}", "bold red") if over else ("within budget", "green")
        yield Text.assemble((usage.program, "bold"), "  ", verdict)
        limits = (("peak", usage.peak, budget.peak), ("growth per step", usage.steepest, budget.growth))
        yield from rows(
            (name, f"{format_size(taken)} of {format_size(limit)}")
            for name, taken, limit in limits
            if limit is not None
        )


def _figures(changes: Changes) -> Iterator[tuple[str, float, float]]:
    before, after = changes.before, changes.after
    yield "peak", before.peak, after.peak
    if before.reserved is not None and after.reserved is not None:
        yield "reserved", before.reserved, after.reserved
    yield "growth per step", before.growth, after.growth


def _totals(changes: Changes) -> Iterator[tuple[str, str]]:
    for name, was, now in _figures(changes):
        yield name, _both(was, now) + (f" ({_delta(was, now)})" if was != now else "")


def _tables(changes: Changes) -> Iterator[tuple[str, Iterable[tuple[Function, float, float]]]]:
    """The tables that have a row: what is told, and the functions with the largest changes."""
    for title, found in (
        ("At the peak, by function", changes.at_peak()),
        ("Left behind by each turn, by function", changes.growing()),
    ):
        if found:
            yield title, found[:_FUNCTIONS]


def _row(name: str, was: float, now: float) -> str:
    change = _delta(was, now) if was != now else ""
    return f"| {name} | {format_size(was)} | {format_size(now)} | {change} |"


def _both(was: float, now: float) -> str:
    return f"{format_size(was)}, the same" if was == now else f"{format_size(was)} → {format_size(now)}"


def _delta(was: float, now: float) -> str:
    return f"{'+' if now > was else ''}{format_size(now - was)}"
