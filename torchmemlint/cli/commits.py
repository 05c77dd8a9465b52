"""Measuring a program as it is in two commits, each in a checkout of its own that goes afterwards."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from torchmemlint.runtime.changes import Usage, read_usage
from torchmemlint.source.revisions import check_out, place_in_tree

_SUCCESS = (0, 1)  # 1: something grows


def measured(commits: str, arguments: Sequence[str]) -> tuple[Usage, Usage]:
    """Run `torchmemlint trace` with these arguments in both: `A..B`, or `A` for A and the files as they are here.

    Raises click's usage error for what is no range or has no program, RevisionError for what git does not know,
    UnreadableRunError and click's exception where a program does not run.
    """
    first, dots, second = commits.partition("..")
    if not first or second.startswith(".") or not arguments:
        raise click.UsageError("Write it as `--commits A..B -- SCRIPT [ARGS]`, or `--commits A -- SCRIPT [ARGS]`.")
    with tempfile.TemporaryDirectory(prefix="torchmemlint-") as name:
        before = _measured(first, arguments, Path(name, "before"))
        return before, _measured((second or "HEAD") if dots else None, arguments, Path(name, "after"))


def _measured(commit: str | None, arguments: Sequence[str], folder: Path) -> Usage:
    folder.mkdir()
    here, file = Path.cwd(), folder / "run.json"
    if commit is not None:
        check_out(commit, here, folder / "tree")
        here = folder / "tree" / place_in_tree(here)
        if not here.is_dir():
            raise click.ClickException(f"{commit}: has no folder {place_in_tree(Path.cwd())}")
    click.echo(f"measuring {commit or 'the files here'}", err=True)
    command = (sys.executable, "-m", "torchmemlint", "trace", "--quiet", "--output-format", "json", "-o", str(file))
    done = subprocess.run((*command, *arguments), cwd=here, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode not in _SUCCESS or not file.is_file():
        said = done.stderr.decode(errors="replace").strip()
        raise click.ClickException(f"{commit or 'the files here'}: it could not be measured:\n{said}")
    return read_usage(file)
