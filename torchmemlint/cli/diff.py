"""`torchmemlint diff`: what changed between two measured runs, and whether runs keep to a budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.running import report_stream
from torchmemlint.cli.terminal import complain

if TYPE_CHECKING:
    from torchmemlint.runtime.changes import Usage

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(short_help="Compare two measured runs, or compare runs with a budget.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--budget", type=_FILE, help="Compare each run with the limits for its program in this TOML file.")
@click.option(
    "--allow",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="How much the peak may rise.",
)
@click.option(
    "--commits",
    metavar="A..B",
    help="Trace a program in two commits: `--commits A..B -- SCRIPT [ARGS]`. With A alone: in A and as it is.",
)
@click.option("--output-format", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option("--output-file", "-o", type=_FILE, help="Write the report to a file.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Use colours.")
def diff(runs: tuple[str, ...], **options: Any) -> int:
    """Compare two runs, BEFORE and AFTER.

    They are JSON of `trace` or `verify`, or two memory snapshots of PyTorch.

    The report says by how much the peak and the growth changed, and in which functions. With --budget, each run is
    compared with its own limits instead. With --commits, `torchmemlint trace` runs what follows `--`, in a checkout of
    each commit. The exit code is 1 if memory is worse or over budget, 0 if not, and 2 for an error.
    """
    from torchmemlint.config.errors import ConfigError
    from torchmemlint.runtime.changes import UnreadableRunError

    if options["budget"] is None and options["commits"] is None and len(runs) != 2:
        raise click.UsageError("Give two runs, BEFORE.json and AFTER.json, or a --budget.")
    if options["budget"] is not None and options["output_format"] == "markdown":
        raise click.UsageError("--output-format markdown is for two runs.")
    if options["budget"] is not None and options["commits"] is not None:
        raise click.UsageError("--budget and --commits do not go together.")
    try:
        if options["commits"] is not None:
            from torchmemlint.cli.commits import measured

            return _compared(*measured(options["commits"], runs), options)
        usages = [_read(Path(path)) for path in runs]
        if options["budget"] is not None:
            return _held_against(options["budget"], usages, options)
        return _compared(usages[0], usages[1], options)
    except (UnreadableRunError, ConfigError) as error:
        complain("error", str(error))
        return 2


def _read(path: Path) -> Usage:
    """A run from its JSON, or from a snapshot: no JSON begins with a pickle's first byte."""
    from torchmemlint.runtime.changes import UnreadableRunError, read_usage

    try:
        with path.open("rb") as file:
            pickled = file.read(1) == b"\x80"
    except OSError:
        pickled = False  # the reader says why
    if not pickled:
        return read_usage(path)
    from torchmemlint.snapshot.pickled import Refused
    from torchmemlint.snapshot.usage import usage_of

    try:
        return usage_of(path, Path.cwd())
    except Refused as error:
        raise UnreadableRunError(f"{path}: {error}") from None


def _compared(before: Usage, after: Usage, options: dict[str, Any]) -> int:
    from torchmemlint.report.run_changes import markdown, write_changes
    from torchmemlint.runtime.changes import Changes

    changes = Changes(before, after, options["allow"] / 100)
    with report_stream(options["output_file"], options["color"]) as (stream, colored):
        if options["output_format"] == "json":
            stream.write(json.dumps(changes.to_json(), indent=2) + "\n")
        elif options["output_format"] == "markdown":
            stream.write(markdown(changes))
        else:
            write_changes(changes, stream, color=colored)
    return int(bool(changes.reasons))


def _held_against(file: Path, usages: list[Usage], options: dict[str, Any]) -> int:
    from torchmemlint.config.errors import ConfigError, nearest
    from torchmemlint.report.run_changes import budgets_json, write_budgets
    from torchmemlint.runtime.budget import read_budget
    from torchmemlint.runtime.changes import over

    budgets = read_budget(file)
    for usage in usages:
        if usage.program not in budgets:
            meant = nearest(usage.program, budgets)
            hint = f" (did you mean {meant!r}?)" if meant else ""
            raise ConfigError(f"{file}: has no budget for {usage.program!r}{hint}")
    checked = [(usage, budgets[usage.program], over(usage, budgets[usage.program])) for usage in usages]
    with report_stream(options["output_file"], options["color"]) as (stream, colored):
        if options["output_format"] == "json":
            stream.write(json.dumps(budgets_json(checked), indent=2) + "\n")
        else:
            write_budgets(checked, stream, color=colored)
    return int(any(exceeded for _, _, exceeded in checked))
