"""`torchmemlint run`: run a program as it is, and explain it if CUDA runs out of memory."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchmemlint.cli.running import needs_page, needs_torch

if TYPE_CHECKING:
    from torchmemlint.runtime.record import Recording
    from torchmemlint.snapshot.report import OomReport

_OWN = Path(__file__).parent.parent
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    short_help="Run a program as it is, and explain it if CUDA runs out of memory.",
    context_settings={"auto_envvar_prefix": "TORCHMEMLINT_RUN", "allow_interspersed_args": False},
)
@click.argument("script")
@click.argument("arguments", nargs=-1, metavar="[ARGS]...", type=click.UNPROCESSED)
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as for `python -m`.")
@click.option("--snapshot", type=_FILE, default="oom_snapshot.pickle", show_default=True, help="Where snapshots go.")
@click.option(
    "--oom-report", type=_FILE, help="Write the report also to a file: .html, .json, or text where it ends otherwise."
)
@click.option(
    "--entries", type=click.IntRange(min=1), default=100_000, show_default=True, help="Events that are kept, the last."
)
def run(
    script: str, arguments: tuple[str, ...], module: bool, snapshot: Path, oom_report: Path | None, entries: int
) -> int:
    """Run SCRIPT with its ARGS in this process, as python does, while the allocator's history is recorded.

    When CUDA runs out of memory, a snapshot is written and `torchmemlint oom` reports on it, with the findings in the
    files that ran. The exit code is the program's own, and 1 for an error that it does not catch.
    """
    needs_torch("run")
    needs_page(oom_report if oom_report is not None and oom_report.suffix == ".html" else None)
    if not module and not Path(script).is_file():
        raise click.UsageError(f"{script}: no such file.")
    from torchmemlint.runtime.record import recording

    with recording(snapshot, entries=entries) as made:
        if not made.on:
            click.echo("notice: no GPU, or a torch that records no history: nothing is recorded", err=True)
        code = _run(script, arguments, module=module)
    if made.problem is not None:
        click.echo(f"warning: the snapshot could not be written: {made.problem}", err=True)
    if made.written:
        _explain(made, oom_report)
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


def _explain(made: Recording, file: Path | None) -> None:
    from torchmemlint.cli.terminal import wants_color
    from torchmemlint.report.oom import write_oom

    report = _report(made.file)
    root = Path.cwd()
    click.echo(f"\nA snapshot of {made.file.stat().st_size:,} bytes is in {made.file}.", err=True)
    write_oom(report, sys.stderr, color=wants_color("auto", sys.stderr), root=root)
    if file is None:
        return
    if file.suffix == ".html":
        from torchmemlint.report.page.oom import oom_page

        file.write_text(oom_page(report, root), encoding="utf-8")
    elif file.suffix == ".json":
        import json

        file.write_text(json.dumps(report.to_json(), indent=2) + "\n", encoding="utf-8")
    else:
        with file.open("w", encoding="utf-8") as stream:
            write_oom(report, stream, color=False, root=root)


def _report(snapshot: Path) -> OomReport:
    """The report, with the findings of the files that ran."""
    from torchmemlint.cli.configuration import ConfigurationOptions, resolver_for
    from torchmemlint.runtime.commands import lint
    from torchmemlint.snapshot.analysis import analyse
    from torchmemlint.snapshot.callers import is_users_file, normal
    from torchmemlint.snapshot.reader import read_snapshot
    from torchmemlint.snapshot.sources import find_sources

    read = read_snapshot(snapshot)
    named = {normal(frame.filename) for frame in read.frames if frame.python}
    paths = (Path(path) for path in named if is_users_file(path))
    files = sorted(path for path in paths if path.is_file() and _OWN not in path.parents)
    options = ConfigurationOptions(confidence="possible")
    findings, errors = lint(map(str, files), resolver_for(options))
    sources = find_sources(read.frames, files)
    return analyse(read, str(snapshot), sources, findings, checked=len(files), notes=errors)
