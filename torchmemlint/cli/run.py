"""`torchmemlint run`: run a program as it is, and explain it if CUDA runs out of memory."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import click

from torchmemlint.cli.explaining import explain
from torchmemlint.cli.running import needs_page, needs_torch
from torchmemlint.post_mortem import ENTRIES, SNAPSHOT, forget

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    short_help="Run a program, and explain it if CUDA runs out of memory.",
    context_settings={"auto_envvar_prefix": "TORCHMEMLINT_RUN", "allow_interspersed_args": False},
)
@click.argument("script")
@click.argument("arguments", nargs=-1, metavar="[ARGS]...", type=click.UNPROCESSED)
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as for `python -m`.")
@click.option("--snapshot", type=_FILE, default=SNAPSHOT, show_default=True, help="The file for the snapshot.")
@click.option(
    "--oom-report",
    type=_FILE,
    help="Also write the report to a file: .html, .json, .sarif, or text for other names.",
)
@click.option(
    "--entries",
    type=click.IntRange(min=1),
    default=ENTRIES,
    show_default=True,
    help="How many events to keep, the last ones.",
)
def run(
    script: str, arguments: tuple[str, ...], module: bool, snapshot: Path, oom_report: Path | None, entries: int
) -> int:
    """Run SCRIPT with its ARGS as python does, and record the allocator's history.

    When CUDA runs out of memory, a snapshot is written. `torchmemlint oom` then reports on it, with the findings in the
    files that ran. The exit code is the program's own, or 1 for an error that it does not catch.
    """
    needs_torch("run")
    needs_page(oom_report if oom_report is not None and oom_report.suffix == ".html" else None)
    if not module and not Path(script).is_file():
        raise click.UsageError(f"{script}: no such file.")
    forget()
    from torchmemlint.runtime.record import recording

    with recording(snapshot, entries=entries) as made:
        if not made.on:
            click.echo("notice: no GPU, or a torch that records no history: nothing is recorded", err=True)
        code = _run(script, arguments, module=module)
    explain(made, oom_report)
    return code


def _run(script: str, arguments: tuple[str, ...], *, module: bool) -> int:
    """The program's exit code."""
    before = sys.argv, list(sys.path)
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path.cwd()) if module else str(Path(script).resolve().parent)
    try:
        if module:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0
        click.echo(left.code, err=True)
        return 1
    except Exception:  # noqa: BLE001 (it is the program's, and told as Python tells it)
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.argv, sys.path[:] = before
    return 0
