"""The report of `torchmemlint fit` for the terminal, by rich."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.table import Table

from torchmemlint.runtime.fit import NO_MARGIN, FitReport, Tried
from torchmemlint.sizes import format_size


def write_fit(report: FitReport, stream: TextIO) -> None:
    """Write the report."""
    console = Console(file=stream, highlight=False, soft_wrap=True)
    console.print(f"[bold]{report.program}[/bold]")
    console.print(f"{report.backend}\n", style="dim")
    console.print(_verdict(report))
    if report.option is not None:
        _values(report, console)
    if report.changes:
        _changes(report, console)
    elif not report.given.fits:
        console.print("\n--what-if all runs it with checkpointing, autocast, other optimizers and more.")


def _values(report: FitReport, console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(f"--{report.option}", justify="right")
    for heading in ("peak", "reserved", _with(report)):
        table.add_column(heading, justify="right")
    table.add_column("")
    for one in report.tried:
        table.add_row(str(one.value), *map(format_size, (one.peak, one.reserved, one.needed)), _fits(one))
    console.print()
    console.print(table)
    if report.largest is None:
        console.print(f"\nNo --{report.option} that was tried fits.")
    else:
        console.print(f"\nThe largest --{report.option} that fits: {report.largest}.")


def _changes(report: FitReport, console: Console) -> None:
    """What the program needs with each change by itself."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("change", no_wrap=True)
    for heading in ("peak", _with(report), "saves"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for one in report.changes:
        if one.tried is not None:
            sizes = map(format_size, (one.tried.peak, one.tried.needed, one.saved))
            table.add_row(one.name, *sizes, _fits(one.tried))
    console.print()
    if table.row_count:
        console.print(table)
    for one in report.changes:
        if one.tried is None:
            console.print(f"{one.name}: {one.problem}", style="dim", markup=False)
    if report.given.fits:
        return
    if report.remedies:
        told = [f"{one.name} (saves {format_size(one.saved)}; {one.price})" for one in report.remedies]
        console.print(f"\nIt fits with any of: {', '.join(told)}.")
    else:
        console.print("\nNone of these changes is enough by itself.")


def _verdict(report: FitReport) -> str:
    given, there = report.given, f"{report.card}, which has {format_size(report.capacity)} for torch"
    needs = f"needs {format_size(given.needed)} {_with(report)}"
    if given.fits:
        return f"fits {there}: {needs}"
    return f"does not fit {there}: {needs}, {format_size(report.missing)} more than there is"


def _with(report: FitReport) -> str:
    return "with a CUDA context" if report.margin == NO_MARGIN else "with a CUDA context and the margin"


def _fits(one: Tried) -> str:
    return "fits" if one.fits else "does not fit"
