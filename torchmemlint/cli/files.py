"""The files that a command is about, found in the paths that were named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchmemlint.cli.terminal import complain

if TYPE_CHECKING:
    from torchmemlint.config.resolver import Resolver


def find_files(
    paths: tuple[str, ...],
    resolver: Resolver,
    *,
    quiet: bool = False,
    silent: bool = False,
    force_exclude: bool = False,
    writes: bool = False,
) -> tuple[Path, ...]:
    """The files to check in what was named, with what there is to say about them said."""
    from torchmemlint.source.discovery import MissingPathError, discover

    try:
        found = discover([Path(path) for path in paths], resolver.settings_for, force_exclude=force_exclude)
    except MissingPathError as error:
        raise click.UsageError(f"{error}{_command_hint(paths)}") from None
    for notice in (*found.notices, *_left_behind(found.leftovers, remove=writes)):
        if not silent:
            complain("notice", notice)
    if not found.files and found.refused:
        raise click.UsageError("None of the given files can be checked.")
    if not found.files and not found.excluded and not (quiet or silent):
        complain("warning", "no Python files found under the given path(s)")
    return found.files


def _left_behind(leftovers: Sequence[Path], *, remove: bool) -> Iterator[str]:
    """What is said of half-written files; a run that writes removes them."""
    if leftovers and remove:
        from torchmemlint.fixes.write import remove_leftovers

        for path in remove_leftovers(leftovers):
            yield f"{path}: removed: a run that was killed had left it half written"
    elif leftovers:
        yield from (f"{path}: left by a run that was killed; the next one with --fix removes it" for path in leftovers)


def _command_hint(paths: tuple[str, ...]) -> str:
    from torchmemlint.cli.main import nearest_command

    near = None if Path(paths[0]).exists() else nearest_command(paths[0])
    return f". Did you mean the command `{near}`?" if near else ""
