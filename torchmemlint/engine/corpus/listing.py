"""A list of projects: a folder, an archive or the URL of a git repository on each line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from torchmemlint.immutable import immutable

ARCHIVES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar", ".zip", ".whl")
_URL = re.compile(r"(https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")  # the second is how ssh writes it


class Kind(Enum):
    """What a line names."""

    FOLDER = "folder"
    ARCHIVE = "archive"
    REPOSITORY = "repository"


class ListError(Exception):
    """A list that cannot be used; the message names the line and says why."""


@immutable()
class Listed:
    """One project of a list."""

    name: str  # one for each: what its files are named by in the output
    kind: Kind
    where: str  # absolute path, or URL


def read_list(text: str, title: str, folder: Path) -> list[Listed]:
    """The projects of a list; relative paths begin at `folder`. Blank lines and those that begin with `#` say nothing.

    Raises `ListError` for a line that names nothing that is there, and for a project that lies within another one.
    """
    found: list[Listed] = []
    names: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        try:
            kind, where, name = _read(entry, folder)
        except ListError as error:
            raise ListError(f"{title}:{number}: {entry}: {error}") from None
        found.append(Listed(_unused(name, names), kind, where))
    if not found:
        raise ListError(f"{title}: names no project")
    _refuse_nested(title, [one.where for one in found if one.kind is Kind.FOLDER])
    return found


def _read(entry: str, folder: Path) -> tuple[Kind, str, str]:
    if _URL.fullmatch(entry):
        last = re.split(r"[/:]", entry.rstrip("/"))[-1].removesuffix(".git")
        return Kind.REPOSITORY, entry, last
    path = Path(os.path.normpath(folder / Path(entry).expanduser()))
    if path.is_dir():
        return Kind.FOLDER, str(path), path.name
    if not path.exists():
        raise ListError("no such file or folder, and no URL")
    suffix = next((suffix for suffix in ARCHIVES if path.name.lower().endswith(suffix)), None)
    if suffix is None or not path.is_file():
        raise ListError(f"neither a folder nor an archive ({', '.join(ARCHIVES)})")
    return Kind.ARCHIVE, str(path), path.name[: -len(suffix)]


def _unused(name: str, names: set[str]) -> str:
    """The name, with a number if another project has it."""
    name = "root" if name in ("", ".", "..") else name
    candidates = (name, *(f"{name}-{number}" for number in range(2, len(names) + 3)))
    chosen = next(candidate for candidate in candidates if candidate not in names)
    names.add(chosen)
    return chosen


def _refuse_nested(title: str, folders: Iterable[str]) -> None:
    """A file has one project."""
    seen: set[Path] = set()
    for folder in sorted(map(Path, folders), key=lambda path: len(path.parts)):
        around = next((above for above in (folder, *folder.parents) if above in seen), None)
        if around is not None:
            again = "is listed twice" if around == folder else f"lies in {around}, which is listed, too"
            raise ListError(f"{title}: {folder} {again}")
        seen.add(folder)
