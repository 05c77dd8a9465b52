"""What a check shows, where, and the exit code that it ends with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from torchmemlint.cli.outputs import Target, deliver
from torchmemlint.cli.terminal import complain, knows_links, wants_color, width_of
from torchmemlint.immutable import immutable

if TYPE_CHECKING:
    from torchmemlint.engine.run import RunReport
    from torchmemlint.report.formats import Format


@immutable()
class Output:
    """How to show the results."""

    targets: tuple[Target, ...]
    color: str
    quiet: bool
    silent: bool  # nothing goes to the terminal but errors
    verbose: int  # how often `-v` was given
    statistics: bool
    folds: bool  # advice, and what a rule repeats in a file
    diff: bool
    fix_only: bool
    show_fixes: bool
    add_ignores: bool
    exit_zero: bool
    exit_non_zero_on_fix: bool
    root: Path


def tell(report: RunReport, seconds: float, output: Output) -> None:
    """What `--verbose` asks for."""
    if not output.verbose:
        return
    from torchmemlint.cli import verbosity

    for line in verbosity.lines(report, seconds, output.root, output.verbose):
        complain("notice", line)


def show(report: RunReport, output: Output, standard: TextIO) -> None:
    """The report in each format that is asked for; `standard` is for those without a file."""
    from torchmemlint.report import write, write_diff

    report = replace(report, show_summary=not output.quiet, folds=output.folds, show_fixes=output.show_fixes)

    def write_as(output_format: Format, stream: TextIO) -> None:
        color = wants_color(output.color, stream) if stream is standard else output.color == "always"
        if output.diff:
            write_diff(report, stream, color=color, root=output.root)
        elif not output.fix_only and not (output.add_ignores and not report.findings):
            name = output_format.name
            left = replace(report, fixed=()) if output.add_ignores else report
            wide, linked = (width_of(stream), color and knows_links(stream)) if stream is standard else (0, False)
            write(
                left,
                name,
                stream,
                color=color,
                root=output.root,
                statistics=output.statistics,
                width=wide,
                links=linked,
            )

    deliver([one for one in output.targets if one.file is not None or not output.silent], standard, write_as)
    if (output.diff or output.fix_only or output.add_ignores) and not output.quiet:
        from torchmemlint.report.paint import Paint
        from torchmemlint.report.summary import fixed_lines, not_fixed_lines

        for line in not_fixed_lines(report, output.root, Paint(on=False)):
            click.echo(line, err=True)
        fixed = sum(len(one.applied) for one in report.fixed)
        done, would = ("Ignored", "Would ignore") if output.add_ignores else ("Fixed", "Would fix")
        click.echo(f"{would if output.diff else done} {fixed} problem{'' if fixed == 1 else 's'}.", err=True)
        if output.show_fixes and not output.add_ignores:
            for line in fixed_lines(report, output.root):
                click.echo(line, err=True)


def exit_code(report: RunReport, output: Output) -> int:
    """What went wrong is said; 2 where something did, 1 where something is left that fails a run."""
    for notice in report.notices if not output.silent else ():
        complain("warning", notice)
    for error in report.errors:
        complain("error", error)
    if output.verbose:
        for traceback in report.tracebacks:
            click.echo(traceback, err=True)
    if report.errors:
        return 2
    if output.exit_zero:
        return 0
    if output.diff:
        return int(any(one.after != one.before for one in report.fixed))
    if output.exit_non_zero_on_fix and any(one.applied for one in report.fixed):
        return 1
    return int(report.failing > 0 and not output.fix_only)
