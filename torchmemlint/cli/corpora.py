"""`--projects-from`: many projects in one run."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.terminal import is_terminal

if TYPE_CHECKING:
    from torchmemlint.cli.configuration import ConfigurationOptions
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.engine.corpus.checking import Corpus, Ready
    from torchmemlint.engine.run import RunReport
    from torchmemlint.engine.runner import Executor, Request

_THREADS = 2  # here: one project is unpacked while another is checked

projects_option = click.option(
    "--projects-from",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Check the projects that FILE lists (`-`: standard input). Each line is a folder, an archive (.tar.gz, .zip)"
    " or the URL of a git repository.",
)


@contextlib.contextmanager
def opened_corpus(
    file: Path,
    configuration: ConfigurationOptions,
    request_for: Callable[[Resolver, tuple[Path, ...]], Request],
    *,
    quiet: bool,
    executor: Executor | None = None,
    seen: Callable[[Ready], None] = lambda ready: None,
) -> Iterator[Corpus]:
    """The projects of a list, each with a resolver for its own folder; `request_for` says what to do with files.

    What is unpacked is there until the context ends. Raises click's usage errors.
    """
    from torchmemlint.cli.configuration import resolver_for
    from torchmemlint.cli.progress import ProgressBar
    from torchmemlint.engine.corpus.checking import Corpus
    from torchmemlint.engine.corpus.listing import Kind, ListError, read_list
    from torchmemlint.engine.runner import run

    try:
        listed = read_list(_text(file), str(file), Path.cwd())
    except ListError as error:
        raise click.UsageError(str(error)) from None
    lasting = all(one.kind is Kind.FOLDER for one in listed)  # else paths are others in the next run

    def check(resolver: Resolver, files: tuple[Path, ...]) -> RunReport:
        request = request_for(resolver, files)
        with ProgressBar(len(files), enabled=is_terminal(sys.stderr) and not quiet) as progress:
            return run(replace(request, use_cache=request.use_cache and lasting), progress)

    with tempfile.TemporaryDirectory(prefix="torchmemlint-") as folder:
        yield Corpus(
            listed,
            lambda project: resolver_for(replace(configuration, project_root=project)),
            check,
            Path(folder).resolve(),
            _THREADS if executor is None else executor.threads,
            seen,
        )


def refuse_with_projects(paths: tuple[str, ...], options: dict[str, Any]) -> None:
    """Raise for what a run over many projects has no use for."""
    if paths:
        raise click.UsageError("--projects-from names what to check: give no PATHS besides.")
    for option in (
        "fix",
        "fix_only",
        "diff",
        "add_ignores",
        "new_since",
        "show_files",
        "show_settings",
        "project_root",
    ):
        if options.get(option):
            raise click.UsageError(f"--projects-from and --{option.replace('_', '-')} cannot be combined.")


def _text(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise click.UsageError(f"{file}: cannot be read: {reason}") from None
