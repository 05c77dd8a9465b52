"""`torchmemlint verify --rule CODE` and `--all-rules`: the rules' own experiments."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from torchmemlint.runtime.experiments.base import Experiment
    from torchmemlint.runtime.experiments.outcome import Outcome


def experiments_of(codes: Sequence[str], backend: str) -> list[Experiment]:
    """The experiments of some rules (of all, without codes) that a backend can tell about.

    Raises a usage error for a rule that there is none of, or that has no experiment, with the reason.
    """
    from torchmemlint.cli.rule import find_rule
    from torchmemlint.runtime.experiments import catalogue

    if not codes:
        return catalogue.of_backend(backend)
    found: list[Experiment] = []
    for word in codes:
        code = find_rule(word).code
        if code in catalogue.WITHOUT:
            raise click.UsageError(f"{code} has no experiment: it is {catalogue.WITHOUT[code]}.")
        found += catalogue.of_rule(code)
    return found


def run_experiments(codes: Sequence[str], backend: str, output_format: str) -> int:
    """Run them, and tell what each saved; 0, as an experiment is no finding."""
    from torchmemlint.runtime.launch import import_torch

    import_torch()
    import torch

    from torchmemlint.runtime.backends import choose
    from torchmemlint.runtime.experiments.base import measure

    try:
        name = choose(backend).name
    except (RuntimeError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    torch.set_num_threads(1)  # a step's time is steadier so, and the programs are small
    outcomes = [measure(experiment, name) for experiment in experiments_of(codes, name)]
    if output_format == "json":
        click.echo(json.dumps([outcome.to_json() for outcome in outcomes], indent=2))
    else:
        _show(outcomes, name)
    return 0


def _show(outcomes: Sequence[Outcome], backend: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from torchmemlint.runtime.experiments import table

    console = Console(file=sys.stdout, highlight=False)
    label = "" if backend == "simulated" else "measured on "  # a simulation's description says so itself
    console.print(f"{label}{outcomes[0].backend}\n")
    shown = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("rule", "program", "figure"):
        shown.add_column(heading)
    for heading in ("bad → good", "peak", "step"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for outcome in outcomes:
        shown.add_row(
            outcome.code,
            outcome.title,
            outcome.effect.value,
            table.change(outcome),
            table.share_of_peak(outcome),
            table.time_per_step(outcome),
        )
    console.print(shown)
    for note in dict.fromkeys((outcome.code, outcome.title, outcome.note) for outcome in outcomes if outcome.note):
        console.print(f"{note[0]}, {note[1]}: {note[2]}", style="dim")
