"""The files to check: what the paths of the command line stand for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from torchmemlint.regular import LEFTOVER, is_within
from torchmemlint.source import gitignore

SUFFIXES = (".py", ".pyi", ".ipynb")


class Exclusions(Protocol):
    """What discovery needs of the settings of a directory."""

    @property
    def root(self) -> Path:
        """The directory that the patterns are relative to."""

    @property
    def respect_gitignore(self) -> bool:
        """Whether `.gitignore` files count."""

    def excludes(self, path: str, *, is_directory: bool, names_only: bool = False) -> bool:
        """Whether a file or directory is left out: by its name, or (unless `names_only`) by a pattern."""


class MissingPathError(FileNotFoundError):
    """A path of the command line that does not exist."""


@dataclass(slots=True)
class Discovery:
    """What was found: absolute paths in a fixed order, each file once."""

    files: tuple[Path, ...] = ()
    notices: list[str] = field(default_factory=list)  # about named files and directories that cannot be checked
    refused: int = 0  # how many named files cannot be checked
    leftovers: list[Path] = field(default_factory=list)  # half-written files that a killed run has left, perhaps
    excluded: int = 0  # how many named paths the patterns leave out, under `force_exclude`


def discover(
    paths: Sequence[Path], settings_for: Callable[[Path], Exclusions], *, force_exclude: bool = False
) -> Discovery:
    """Find the Python files and notebooks below `paths`.

    Named files are always checked, unless `force_exclude`; directories are walked without following links to
    directories, or to files elsewhere. A file that can be reached in two ways is found once, under its real name if
    that is one of them.
    Raises `MissingPathError`.
    """
    found = Discovery()
    by_identity: dict[str, tuple[bool, str]] = {}
    for given in paths:
        path = Path(os.path.abspath(given))  # noqa: PTH100 (links in the path are kept)
        if force_exclude and is_excluded(path, settings_for):
            found.excluded += 1
            continue
        if path.is_dir():
            real = os.path.realpath(path)
            patterns_hold = _exclusion_holds(path, settings_for)
            for file, is_link in _walk(path, settings_for, patterns_hold, found):
                identity = os.path.realpath(file) if is_link else real + file[len(str(path)) :]
                _keep(by_identity, identity, is_link, file)
        elif not path.exists() and not path.is_symlink():
            raise MissingPathError(f"{given}: no such file or directory")
        elif (problem := _unfit(path)) is not None:
            found.notices.append(f"{given}: {problem}")
            found.refused += 1
        else:
            _keep(by_identity, os.path.realpath(path), path.is_symlink(), str(path))
    found.files = tuple(sorted(Path(file) for _, file in by_identity.values()))
    return found


def _keep(by_identity: dict[str, tuple[bool, str]], identity: str, is_link: bool, file: str) -> None:
    """Keep the better of the names of one file: a real one before a link, then the first in the alphabet."""
    candidate = (is_link, file)
    by_identity[identity] = min(by_identity.get(identity, candidate), candidate)


def _walk(
    top: Path, settings_for: Callable[[Path], Exclusions], patterns_hold: bool, found: Discovery
) -> Iterator[tuple[str, bool]]:
    """Python files below a directory, and whether each is a symbolic link; `found` hears of all else."""
    stack: list[tuple[str, gitignore.Ignores | None]] = [(str(top), gitignore.above(top))]
    while stack:
        directory, above = stack.pop()
        settings = settings_for(Path(directory))
        ignores = gitignore.enter(Path(directory), above) if settings.respect_gitignore else None
        try:
            entries = list(os.scandir(directory))
        except OSError as error:
            found.notices.append(f"{directory}: cannot be listed: {error.strerror}")
            continue
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            if not is_directory and not entry.name.endswith(SUFFIXES):
                if entry.name.endswith(LEFTOVER):
                    found.leftovers.append(Path(entry.path))
                continue
            if settings.excludes(entry.path, is_directory=is_directory, names_only=not patterns_hold):
                continue
            if ignores is not None and ignores.leaves_out(_posix(entry.path), is_directory=is_directory):
                continue
            if is_directory:
                stack.append((entry.path, ignores))
            elif entry.is_file(follow_symlinks=False):
                yield entry.path, False
            elif entry.is_symlink() and not Path(entry.path).is_dir() and not _is_special(Path(entry.path)):
                if _leads_out(entry.path, top, settings.root):
                    found.notices.append(f"{entry.path}: a link that leads out of the project: passed over")
                else:
                    yield entry.path, True


def _leads_out(link: str, top: Path, root: Path) -> bool:
    """Does it lead to a file that lies neither below what was named nor in the project? Whose code is checked has no
    say in what else is read, shown and mended.
    """
    return Path(link).exists() and not is_within(link, top) and not is_within(link, root)


def _exclusion_holds(top: Path, settings_for: Callable[[Path], Exclusions]) -> bool:
    """Whether the patterns count below a named directory: not where they leave out the directory itself."""
    settings = settings_for(top)
    inside = [path for path in (top, *top.parents) if settings.root in path.parents]
    return not any(settings.excludes(str(path), is_directory=True) for path in inside)


def is_excluded(path: Path, settings_for: Callable[[Path], Exclusions]) -> bool:
    """Whether an absolute path, or a directory that it is in, is left out by name or pattern."""
    settings = settings_for(path if path.is_dir() else path.parent)
    inside = [parent for parent in path.parents if settings.root in parent.parents]
    return settings.excludes(str(path), is_directory=path.is_dir()) or any(
        settings.excludes(str(parent), is_directory=True) for parent in inside
    )


def is_left_out(path: Path, settings_for: Callable[[Path], Exclusions]) -> bool:
    """Whether a run over the directories around an absolute path would pass it over."""
    if is_excluded(path, settings_for):
        return True
    return settings_for(path.parent).respect_gitignore and gitignore.leaves_out(path)


def _unfit(path: Path) -> str | None:
    """Why a named file cannot be checked; None if it can (or if reading it will say why not)."""
    if _is_special(path):
        return "not a regular file: passed over"
    if path.suffix in SUFFIXES:
        return None
    try:
        with path.open("rb") as stream:
            first = stream.readline(200)
    except OSError:
        return None
    if first.startswith(b"#!") and b"python" in first:
        return None
    return "not a Python file (.py, .pyi, .ipynb): passed over"


def _is_special(path: Path) -> bool:
    """A pipe, socket or device: opening it could wait forever."""
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except OSError:
        return False


def _posix(path: str) -> str:
    return path.replace(os.sep, "/") if os.sep != "/" else path
