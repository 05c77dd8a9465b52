"""`--watch`: check again whenever files change."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from torchmemlint.cli.executors import LOCAL
from torchmemlint.cli.terminal import complain, is_terminal

_BEAT = 100  # milliseconds: how long the watcher takes to be ready, and how often it looks up
_SUFFIXES = (".py", ".pyi", ".ipynb", ".toml", ".gitignore", ".json")
_CLEAR = "\x1b[2J\x1b[3J\x1b[H"


def watch(paths: tuple[str, ...], options: dict[str, Any], run: Callable[[], int]) -> int:
    """Run a check now and after each change in `paths` or their configuration, until Ctrl-C; that is no failure.

    What is wrong with a configuration is said, and may be mended meanwhile. Raises a usage error where there is
    nothing to be watched, or nothing to watch it with.
    """
    _refuse(paths, options)
    try:
        while True:
            with _changes(paths, options) as changed:
                try:
                    run()
                except click.ClickException as error:
                    error.show()
                if not options["silent"]:
                    complain("notice", "watching for changes; Ctrl-C ends")
                changed()
            if is_terminal(sys.stdout):
                click.echo(_CLEAR, nl=False, color=True)
    except KeyboardInterrupt:
        return 0


def _refuse(paths: tuple[str, ...], options: dict[str, Any]) -> None:
    for name in ("projects_from", "prove", "show_files", "show_settings"):
        if options[name]:
            raise click.UsageError(f"--watch and --{name.replace('_', '-')} cannot be combined.")
    if options["executor"] != LOCAL:
        raise click.UsageError("--watch and --executor cannot be combined.")
    if "-" in paths:
        raise click.UsageError("--watch is for files, not for standard input.")
    if missing := next((path for path in paths if not Path(path).exists()), None):
        raise click.UsageError(f"{missing}: no such file or folder.")
    if find_spec("watchfiles") is None:
        raise click.UsageError("--watch needs watchfiles: pip install 'torchmemlint[watch]'.")


@contextlib.contextmanager
def _changes(paths: Iterable[str], options: dict[str, Any]) -> Iterator[Callable[[], None]]:
    """A function that waits for a change since the context was entered.

    The watcher is a new one each time: one of a file that is replaced by another, as editors do, sees nothing more.
    """
    from watchfiles import watch

    from torchmemlint.config.settings import DEFAULT_EXCLUDED_NAMES

    named = [Path(path).absolute() for path in paths]
    files = [path for path in named if path.is_file()]
    configured = _configurations(named, options)
    roots = {*(path if path.is_dir() else path.parent for path in named), *configured}

    def matters(change: object, path: str) -> bool:
        place = Path(path)
        if place in files or place in configured:
            return True
        if not path.endswith(_SUFFIXES):
            return False
        above = [one for one in named if one.is_dir() and place.is_relative_to(one)]
        return any(not DEFAULT_EXCLUDED_NAMES & {*place.relative_to(one).parts[:-1]} for one in above)

    found = watch(*roots, watch_filter=matters, rust_timeout=_BEAT, yield_on_timeout=True)
    next(found)  # it is ready
    with contextlib.closing(found):
        yield lambda: next((None for changes in found if changes), None)


def _configurations(paths: Iterable[Path], options: dict[str, Any]) -> set[Path]:
    """The configuration files that hold for paths, and those that they inherit from, as far as they can be read."""
    from torchmemlint.config.errors import ConfigError
    from torchmemlint.config.inheritance import chain_of
    from torchmemlint.config.inspecting import nearest_file

    given = [Path(one).absolute() for one in options["config"] if Path(one).is_file()]
    found: set[Path] = set(given)
    for path in paths if not given and not options["isolated"] else ():
        with contextlib.suppress(ConfigError):  # the check says so
            nearest = nearest_file(path)
            found.update(() if nearest is None else (nearest,))
    for file in list(found):
        with contextlib.suppress(ConfigError):
            chain = chain_of(file)
            found.update(chain.files if chain is not None else ())
    return found
