"""`torchmemlint fit`: whether a program fits a GPU, and with which value of one of its options."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.parameters import refusing
from torchmemlint.cli.running import how_to_simulate, measured, needs_torch, options_of_run, program_of
from torchmemlint.runtime.what_ifs import BY_NAME, GPUS, chosen

if TYPE_CHECKING:
    from torchmemlint.runtime.fit import Margin, Variation


def _parsed(context: click.Context, parameter: click.Parameter, written: str | None) -> Variation | None:
    from torchmemlint.runtime.fit import Variation  # starting is the user's time

    with refusing(context, parameter):
        return None if written is None else Variation.parse(written)


def _margin(context: click.Context, parameter: click.Parameter, written: str | None) -> Margin:
    from torchmemlint.runtime.fit import Margin  # starting is the user's time

    with refusing(context, parameter):
        return Margin() if written is None else Margin.parse(written)


@click.command(
    short_help="Run a program without computing it, and say whether it fits a GPU.",
    context_settings={"auto_envvar_prefix": "TORCHMEMLINT_FIT", "allow_interspersed_args": False},
)
@click.argument("script")
@click.argument("arguments", nargs=-1, metavar="[ARGS]...", type=click.UNPROCESSED)
@how_to_simulate
@click.option("--steps", type=click.IntRange(min=3), default=4, show_default=True, help="Steps of each loop.")
@click.option(
    "--vary",
    callback=_parsed,
    metavar="NAME=LOW..HIGH",
    help="Find the largest power of two for SCRIPT's option --NAME with which it fits.",
)
@click.option(
    "--what-if",
    multiple=True,
    type=click.Choice(["all", *BY_NAME]),
    help="Also run SCRIPT with this change, and say what it saves. Repeat it for several.",
)
@click.option(
    "--gpus",
    type=click.IntRange(min=2),
    default=GPUS,
    show_default=True,
    help="How many GPUs share the work with --what-if zero and fsdp.",
)
@click.option(
    "--margin",
    callback=_margin,
    metavar="SHARE+SIZE",
    help="Count so much more than the allocator reserves, for cuDNN and others: 18%, 1.5GiB or 18%+1.5GiB.",
)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def fit(script: str, arguments: tuple[str, ...], **options: Any) -> int:
    """Run SCRIPT for a few steps on a simulated GPU, and say whether it fits.

    Only shapes are computed, so even a program that is far too large runs. Use --vary to find the largest value of an
    option that fits. Use --what-if to see what a change saves. The exit code is 0 if SCRIPT fits, 1 if it does not,
    and 2 if it cannot be run.
    """
    needs_torch("fit")
    from torchmemlint.runtime.commands import Options
    from torchmemlint.runtime.fit import fit as fitting

    program = program_of(script, arguments, options)
    changes = chosen(options["what_if"])
    how = Options(**options_of_run({**options, "backend": "simulated", "fake": True}))
    besides = options["gpus"], options["margin"]
    report = measured(lambda progress: fitting(program, how, options["vary"], progress, changes, *besides), options)
    if report is None:
        return 2
    if options["output_format"] == "json":
        click.echo(json.dumps(report.to_json(), indent=2))
    else:
        from torchmemlint.report.fit import write_fit

        write_fit(report, sys.stdout)
    return int(not report.given.fits)
