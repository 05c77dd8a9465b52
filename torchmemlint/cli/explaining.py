"""The report on a snapshot that was written when memory ran out, with the findings in the files that ran."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.running import hand_over
from torchmemlint.cli.terminal import complain

if TYPE_CHECKING:
    from torchmemlint.runtime.record import Recording
    from torchmemlint.snapshot.report import OomReport

_OWN = Path(__file__).parent.parent
_FORMATS = {".json": "json", ".sarif": "sarif"}  # of a report's file, by its ending; text else


def explain(made: Recording, file: Path | None) -> None:
    """Print the report to the error stream, and write it to `file`, as its ending says; or else warn."""
    if made.problem is not None:
        complain("warning", f"the snapshot could not be written: {made.problem}")
    if not made.written:
        return
    from torchmemlint.report.oom import write_oom
    from torchmemlint.report.page.oom import oom_page
    from torchmemlint.report.sarif.oom import log

    report, root = _report(made.file), Path.cwd()
    click.echo(f"\nA snapshot of {made.file.stat().st_size:,} bytes is in {made.file}.", err=True)
    options: dict[str, Any] = {"output_format": "text", "output_file": None, "html": None, "color": "auto"}
    try:
        if file is not None and file.suffix == ".html":
            options["html"] = file
        hand_over(report, options, root, write_oom, oom_page, standard=sys.stderr)
        if file is not None and file.suffix != ".html":
            options |= {"output_format": _FORMATS.get(file.suffix, "text"), "output_file": file}
            hand_over(report, options, root, write_oom, oom_page, sarif=log)
    except click.UsageError as error:
        complain("warning", error.message)


def explain_at_exit(file: str | None) -> None:
    """Record from the start of CUDA, and explain at the end of the process what was written on the way."""
    import atexit

    from torchmemlint.runtime.record import from_the_start_of_cuda

    made = from_the_start_of_cuda()
    atexit.register(lambda: explain(made, Path(file) if file is not None else None))


def _report(snapshot: Path) -> OomReport:
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
