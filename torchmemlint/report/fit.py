"""The report of `torchmemlint fit` for the terminal, by rich."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.table import Table

from torchmemlint.runtime.fit import FitReport, Tried
from torchmemlint.sizes import format_size


def write_fit(report: FitReport, stream: TextIO) -> None:
    """Write the report."""
    console = Console(file=stream, highlight=False, soft_wrap=True)
    console.print(f"[bold]{report.program}[/bold]")
    console.print(f"{report.backend}\n", style="dim")
    console.print(_verdict(report))
    if report.option is None:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(f"--{report.option}", justify="right")
    for heading in ("peak", "reserved", "with a CUDA context"):
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


def _verdict(report: FitReport) -> str:
    given, there = report.given, f"{report.card}, which has {format_size(report.capacity)} for torch"
    needs = f"needs {format_size(given.needed)} with a CUDA context"
    if given.fits:
        return f"fits {there}: {needs}"
    return f"does not fit {there}: {needs}, {format_size(report.missing)} more than there is"


def _fits(one: Tried) -> str:
    return "fits" if one.fits else "does not fit"
