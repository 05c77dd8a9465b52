"""`torchmemlint cache`: what is kept of earlier runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from torchmemlint.config.settings import Settings
    from torchmemlint.engine.cache.store import Store

_folder = click.option(
    "--cache-dir",
    envvar="TORCHMEMLINT_CACHE_DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where results are kept.  [default: as configured, else the user's cache directory]",
)


@click.group(short_help="Show or remove the results of earlier runs.")
def cache() -> None:
    """Show or remove the results of earlier runs. `check` uses them for unchanged files."""


@cache.command()
@_folder
def info(cache_dir: Path | None) -> int:
    """Say where results are kept, for how many projects, and how large they are."""
    from torchmemlint.engine.cache.store import files_in
    from torchmemlint.sizes import format_size

    folder = _resolved(cache_dir)
    files = files_in(folder)
    total = sum(path.stat().st_size for path in files)
    click.echo(f"{folder}: {len(files)} project{'' if len(files) == 1 else 's'}, {format_size(total)}")
    for path in files:
        with _opened(path) as store:
            root, count = (store.root, f"{store.count()} results") if store is not None else (path.name, "unreadable")
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(path.stat().st_mtime))
        click.echo(f"  {root}: {count}, {format_size(path.stat().st_size)}, written {when}")
    return 0


@cache.command()
@_folder
@click.option("--all", "everything", is_flag=True, help="Remove those of all projects, not only of this one.")
def clean(cache_dir: Path | None, everything: bool) -> int:
    """Remove the results of earlier runs."""
    from torchmemlint.engine.cache.store import files_in, store_path
    from torchmemlint.sizes import format_size

    folder = _resolved(cache_dir)
    files = files_in(folder) if everything else [path for path in (store_path(folder, _root()),) if path.is_file()]
    freed = sum(path.stat().st_size for path in files)
    try:
        for path in files:
            path.unlink()
    except OSError as error:
        raise click.UsageError(f"{error.filename}: cannot be removed: {error.strerror}") from None
    click.echo(f"Removed {format_size(freed)} of {len(files)} project{'' if len(files) == 1 else 's'} in {folder}.")
    return 0


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Store | None]:
    from torchmemlint.engine.cache.store import Store, StoreError

    try:
        store = Store(path, mend=False)
    except StoreError:
        yield None
        return
    with contextlib.closing(store):
        yield store


def _resolved(cache_dir: Path | None) -> Path:
    from torchmemlint.engine.cache.store import default_folder

    return (cache_dir or _settings().cache_dir or default_folder()).absolute()


def _root() -> Path:
    return _settings().root


def _settings() -> Settings:
    from torchmemlint.config.errors import ConfigError
    from torchmemlint.config.resolver import Resolver

    try:
        return Resolver(Path.cwd()).settings_for(Path.cwd())
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
