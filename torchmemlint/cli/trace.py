"""`torchmemlint trace`: which lines let memory grow, and what keeps it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from torchmemlint.cli.terminal import complain, is_terminal, wants_color
from torchmemlint.cli.verify import Progress, needs_page, program_of, write_page

if TYPE_CHECKING:
    from torchmemlint.runtime.order import Program
    from torchmemlint.runtime.trace_report import TraceReport


@click.command(
    short_help="Run a program, and name the lines whose memory grows, and what keeps it.",
    context_settings={"auto_envvar_prefix": "TORCHMEMLINT_TRACE", "allow_interspersed_args": False},
)
@click.argument("script")
@click.argument("arguments", nargs=-1, metavar="[ARGS]...", type=click.UNPROCESSED)
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as for `python -m`.")
@click.option("--torchrun", is_flag=True, help="Run SCRIPT as torchrun runs it, with one process.")
@click.option(
    "--backend",
    default="auto",
    show_default=True,
    help="On what to measure: `cuda`, `cpu`, `simulated`, or the best there is.",
)
@click.option("--fake", is_flag=True, help="Compute shapes only: for models too large for this machine.")
@click.option(
    "--steps", type=click.IntRange(min=8), default=30, show_default=True, help="Steps that each loop is given."
)
@click.option("--timeout", type=click.FloatRange(min=1), default=600, show_default=True, help="Seconds for the run.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of random, torch and numpy, before the run.")
@click.option("--temporary-directory", is_flag=True, help="Run in an empty directory instead of this one.")
@click.option("--isolated", is_flag=True, help="Ignore all configuration files.")
@click.option("--config", multiple=True, metavar="FILE|KEY=VALUE", help="A configuration file, or one setting as TOML.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--output-file", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write the report to a file."
)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write the report also as an HTML page.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Use colours.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def trace(script: str, arguments: tuple[str, ...], **options: Any) -> int:
    """Run SCRIPT with its ARGS for a few steps, and name the lines whose memory grows from step to step.

    Says for each what keeps it (a list, an attribute, a closure, a graph) and where that is filled, which lines made
    it, and whether a rule has a finding for it. The exit code is 1 if something grows, 0 if nothing does, and 2 if
    the program cannot be measured.
    """
    from torchmemlint.config.errors import ConfigError
    from torchmemlint.runtime.launch import missing_torch

    missing = missing_torch()
    if missing is not None:
        raise click.ClickException(f"torchmemlint trace {missing}")
    needs_page(options["html"])
    program = program_of(script, arguments, module=options["module"], torchrun=options["torchrun"])
    try:
        return _trace(program, options)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _trace(program: Program, options: dict[str, Any]) -> int:
    from torchmemlint.cli.configuration import ConfigurationOptions, resolver_for
    from torchmemlint.runtime.trace import Options, TraceError, trace

    chosen = ConfigurationOptions(
        select=(),
        extend_select=(),
        ignore=(),
        per_file_ignores=(),
        fail_on=None,
        config=options["config"],
        isolated=options["isolated"],
        project_root=None,
    )
    resolver = resolver_for(chosen)
    how = Options(
        options["backend"],
        options["fake"],
        options["steps"],
        options["timeout"],
        options["seed"],
        options["temporary_directory"],
    )
    with Progress(enabled=is_terminal(sys.stderr) and not options["quiet"]) as progress:
        progress.begin("the program as it is", 1, 1)
        try:
            report = trace(program, resolver, how, progress.steps)
        except TraceError as error:
            progress.close()
            if error.details:
                click.echo(error.details.rstrip(), err=True)
            complain("error", str(error))
            return 2
    _write(report, resolver.root, options)
    if options["html"] is not None:
        from torchmemlint.report.page.page import trace_page

        write_page(options["html"], trace_page(report, resolver.root))
    return int(bool(report.leaks))


def _write(report: TraceReport, root: Path, options: dict[str, Any]) -> None:
    file: Path | None = options["output_file"]
    if file is None:
        _show(report, sys.stdout, root, options, color=wants_color(options["color"], sys.stdout))
        return
    try:
        with file.open("w", encoding="utf-8") as stream:
            _show(report, stream, root, options, color=options["color"] == "always")
    except OSError as error:
        raise click.UsageError(f"{file}: cannot be written: {error.strerror}") from None


def _show(report: TraceReport, stream: TextIO, root: Path, options: dict[str, Any], *, color: bool) -> None:
    if options["output_format"] == "json":
        stream.write(json.dumps(report.to_json(), indent=2) + "\n")
        return
    from torchmemlint.report.trace import write_trace

    write_trace(report, stream, color=color, root=root)
