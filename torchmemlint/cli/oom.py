"""`torchmemlint oom`: what a memory snapshot of torch says, line by line, and which findings explain it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.running import Progress, hand_over, how_to_report, needs_page
from torchmemlint.cli.terminal import complain, is_terminal

if TYPE_CHECKING:
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.snapshot.report import OomReport

_NAMED = 3  # files in a note


@click.command(
    short_help="Explain a CUDA memory snapshot: what was live when memory ran out, and which findings say why.",
    context_settings={"auto_envvar_prefix": "TORCHMEMLINT_OOM"},
)
@click.argument("snapshot", type=click.Path(path_type=Path))
@click.argument("sources", nargs=-1, metavar="[SRC]...")
@how_to_report
def oom(snapshot: Path, sources: tuple[str, ...], **options: Any) -> int:
    """Read SNAPSHOT, which `torch.cuda.memory._dump_snapshot` wrote, and say what was live when memory ran out.

    Names the lines whose tensors were live at the peak and at each request that failed, what they were for, how the
    memory was cut up, and what grows from step to step. With SRC, the files or folders that ran, it says which
    findings of the linter explain these lines. The file is not trusted: it is read as plain data, and none of its
    code can run. It needs neither torch nor a GPU. The exit code is 1 if memory ran out, 0 if it did not, and 2 if the
    file is no snapshot.
    """
    from torchmemlint.config.errors import ConfigError

    needs_page(options["html"])
    try:
        return _oom(snapshot, sources, options)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _oom(snapshot: Path, sources: tuple[str, ...], options: dict[str, Any]) -> int:
    from torchmemlint.cli.configuration import ConfigurationOptions, resolver_for
    from torchmemlint.report.oom import write_oom
    from torchmemlint.snapshot.pickled import Refused

    chosen = ConfigurationOptions(
        config=options["config"],
        isolated=options["isolated"],
        confidence="possible",  # that sizes were not seen is no doubt here
    )
    resolver = resolver_for(chosen)
    try:
        report = _report(snapshot, sources, resolver, options)
    except Refused as error:
        complain("error", f"{snapshot}: {error}")
        return 2
    except OSError as error:
        raise click.UsageError(f"{snapshot}: cannot be read: {error.strerror or error}") from None
    from torchmemlint.report.page.oom import oom_page

    hand_over(report, options, resolver.root, write_oom, oom_page)
    return int(report.failed)


def _report(snapshot: Path, sources: tuple[str, ...], resolver: Resolver, options: dict[str, Any]) -> OomReport:
    from torchmemlint.cli.files import find_files
    from torchmemlint.runtime.commands import lint
    from torchmemlint.snapshot.analysis import analyse
    from torchmemlint.snapshot.reader import read_snapshot
    from torchmemlint.snapshot.sources import find_sources

    with Progress(enabled=is_terminal(sys.stderr) and not options["quiet"]) as progress:
        progress.begin(f"read {snapshot}", 1, None)
        read = read_snapshot(snapshot)
        progress.end(1)
        files = find_files(sources, resolver, quiet=True) if sources else ()
        known = find_sources(read.frames, files)
        progress.begin("the linter", 2, None)
        findings, errors = lint(map(str, files), resolver) if files else ([], ())
        progress.end(2)
        progress.begin("what the snapshot says", 3, None)
        notes = [f"{path}: changed since it ran: its lines may be others" for path in known.changed]
        notes += [f"{path}: several files of SRC may be meant" for path in known.ambiguous]
        if sources and not known.local:
            notes.append("no file of SRC is one that ran")
        elif sources and known.absent:
            more = f" and {len(known.absent) - _NAMED} more" if len(known.absent) > _NAMED else ""
            notes.append(f"not found in SRC, though it ran: {', '.join(known.absent[:_NAMED])}{more}")
        checked = len(files) if sources else None
        return analyse(read, str(snapshot), known, findings, checked=checked, notes=(*notes, *errors))
