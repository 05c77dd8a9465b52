"""`torchmemlint trace`: which lines let memory grow, and what keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.running import (
    Progress,
    hand_over,
    how_to_report,
    how_to_run,
    measured,
    needs_page,
    needs_torch,
    options_of_run,
    program_of,
)

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
@click.option("--steps", type=click.IntRange(min=8), default=30, show_default=True, help="Steps of each loop.")
@how_to_report
def trace(script: str, arguments: tuple[str, ...], **options: Any) -> int:
    """Run SCRIPT for a few steps, and name the lines whose memory grows from step to step.

    The report says what keeps the memory (a list, an attribute, a closure, a graph), and where. It also says which
    lines created it, and whether a rule has a finding for it. The program's own output goes to the error stream.
    The exit code is 1 if something grows or memory runs out, and 0 if not. It is 2 for an error, or if a look at
    the program failed.
    """
    from torchmemlint.config.errors import ConfigError

    needs_torch("trace")
    needs_page(options["html"])
    program = program_of(script, arguments, options)
    try:
        return _trace(program, options)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _trace(program: Program, options: dict[str, Any]) -> int:
    from torchmemlint.cli.configuration import ConfigurationOptions, resolver_for
    from torchmemlint.runtime.commands import Options
    from torchmemlint.runtime.trace import trace

    resolver = resolver_for(ConfigurationOptions(config=options["config"], isolated=options["isolated"]))

    def measure(progress: Progress) -> TraceReport:
        progress.begin("the program as it is", 1, 1)
        shown = None if options["quiet"] else progress.show
        return trace(program, resolver, Options(**options_of_run(options)), lambda made: progress.steps(1, made), shown)

    report = measured(measure, options)
    if report is None:
        return 2
    from torchmemlint.report.page.page import trace_page
    from torchmemlint.report.trace import write_trace

    hand_over(report, options, resolver.root, write_trace, trace_page)
    if report.growing or report.run.out_of_memory is not None:
        return 1
    return 2 if report.blind else 0
