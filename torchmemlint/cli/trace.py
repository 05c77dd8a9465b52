"""`torchmemlint trace`: which lines let memory grow, and what keeps it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from torchmemlint.cli.running import (
    Progress,
    how_to_report,
    how_to_run,
    needs_page,
    program_of,
    write_page,
    write_report,
)
from torchmemlint.cli.terminal import complain, is_terminal

if TYPE_CHECKING:
    from torchmemlint.runtime.order import Program
    from torchmemlint.runtime.trace_report import TraceReport


@click.command(
    short_help="Run a program, and name the lines whose memory grows, and what keeps it.",
    context_settings={"auto_envvar_prefix": "TORCHMEMLINT_TRACE", "allow_interspersed_args": False},
)
@click.argument("script")
@click.argument("arguments", nargs=-1, metavar="[ARGS]...", type=click.UNPROCESSED)
@how_to_run
@click.option(
    "--steps", type=click.IntRange(min=8), default=30, show_default=True, help="Steps that each loop is given."
)
@how_to_report
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
    write_report(lambda stream, color: _show(report, stream, resolver.root, options, color=color), options)
    if options["html"] is not None:
        from torchmemlint.report.page.page import trace_page

        write_page(options["html"], trace_page(report, resolver.root))
    return int(bool(report.leaks))


def _show(report: TraceReport, stream: TextIO, root: Path, options: dict[str, Any], *, color: bool) -> None:
    if options["output_format"] == "json":
        stream.write(json.dumps(report.to_json(), indent=2) + "\n")
        return
    from torchmemlint.report.trace import write_trace

    write_trace(report, stream, color=color, root=root)
