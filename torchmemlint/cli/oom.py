"""`torchmemlint oom`: what a memory snapshot of torch says, line by line, and which findings explain it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.running import Progress, hand_over, how_to_report_on_lines, needs_page
from torchmemlint.cli.terminal import complain, is_terminal

if TYPE_CHECKING:
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.snapshot.records import Snapshot
    from torchmemlint.snapshot.report import OomReport
    from torchmemlint.snapshot.sources import Sources

_NAMED = 3  # files in a note
_PICKLES = frozenset({".pickle", ".pkl"})
_PYTHON = frozenset({".py", ".pyi", ".ipynb"})


@click.command(
    short_help="Explain a CUDA memory snapshot: what was live when memory ran out, and why.",
    context_settings={"auto_envvar_prefix": "TORCHMEMLINT_OOM"},
)
@click.argument("snapshots", nargs=-1, required=True, metavar="SNAPSHOT... [SRC]...")
@how_to_report_on_lines
def oom(snapshots: tuple[str, ...], **options: Any) -> int:
    """Read each SNAPSHOT of `torch.cuda.memory._dump_snapshot`, and say why memory ran out.

    The report names the lines whose tensors were live at the peak and at each failed request. It says what they were
    for, how the memory was cut up, and what grows from step to step. SRC are the files or folders that ran: then the
    report says which findings of the linter explain these lines. A snapshot is read as plain data, and none of its code
    can run. It needs neither torch nor a GPU. The exit code is 1 if memory ran out, 0 if not, and 2 for an error.

    Several snapshots are the ranks of one run: `torchmemlint oom rank0.pickle rank1.pickle src/`. Files that are not
    Python are snapshots.
    """
    from torchmemlint.config.errors import ConfigError

    needs_page(options["html"])
    first, *others = snapshots
    ranks = [first, *(one for one in others if not _is_source(one))]
    try:
        return _oom(list(map(Path, ranks)), tuple(one for one in others if _is_source(one)), options)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _is_source(argument: str) -> bool:
    path = Path(argument)
    return path.suffix not in _PICKLES and (path.suffix in _PYTHON or not path.is_file())


def _oom(snapshots: Sequence[Path], sources: tuple[str, ...], options: dict[str, Any]) -> int:
    from torchmemlint.cli.configuration import ConfigurationOptions, resolver_for
    from torchmemlint.report.oom import write_oom
    from torchmemlint.report.page.oom import oom_page
    from torchmemlint.report.sarif.oom import log
    from torchmemlint.snapshot.pickled import Refused
    from torchmemlint.snapshot.ranks import merged
    from torchmemlint.snapshot.reader import read_snapshot

    chosen = ConfigurationOptions(
        config=options["config"],
        isolated=options["isolated"],
        confidence="possible",  # that sizes were not seen is no doubt here
    )
    resolver = resolver_for(chosen)
    read: list[tuple[Path, Snapshot]] = []
    try:
        read.extend((snapshot, read_snapshot(snapshot)) for snapshot in snapshots)
    except Refused as error:
        complain("error", f"{snapshots[len(read)]}: {error}")
        return 2
    except OSError as error:
        raise click.UsageError(f"{snapshots[len(read)]}: cannot be read: {error.strerror or error}") from None
    report = merged(_reports(read, sources, resolver, options))
    hand_over(report, options, resolver.root, write_oom, oom_page, sarif=log)
    return int(report.failed)


def _reports(
    read: Sequence[tuple[Path, Snapshot]], sources: tuple[str, ...], resolver: Resolver, options: dict[str, Any]
) -> list[OomReport]:
    from torchmemlint.cli.files import find_files
    from torchmemlint.runtime.commands import lint
    from torchmemlint.snapshot.analysis import analyse
    from torchmemlint.snapshot.sources import find_sources

    with Progress(enabled=is_terminal(sys.stderr) and not options["quiet"]) as progress:
        progress.begin("the linter", 1, None)
        files = find_files(sources, resolver, quiet=True) if sources else ()
        findings, errors = lint(map(str, files), resolver) if files else ([], ())
        progress.end(1)
        made = []
        for number, (path, snapshot) in enumerate(read, 2):
            progress.begin(f"what {path} says", number, None)
            known = find_sources(snapshot.frames, files)
            checked = len(files) if sources else None
            notes = (*_notes(known, sources), *errors)
            made.append(analyse(snapshot, str(path), known, findings, checked=checked, notes=notes))
            progress.end(number)
    return made


def _notes(known: Sources, sources: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{path}: changed since it ran: its lines may be others" for path in known.changed)
    yield from (f"{path}: several files of SRC may be meant" for path in known.ambiguous)
    if sources and not known.local:
        yield "no file of SRC is one that ran"
    elif sources and known.absent:
        more = f" and {len(known.absent) - _NAMED} more" if len(known.absent) > _NAMED else ""
        yield f"not found in SRC, though it ran: {', '.join(known.absent[:_NAMED])}{more}"
