"""File patterns and paths of configurations, each relative to the folder of the configuration that has it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path, PurePath

from pathspec import GitIgnoreSpec

from torchmemlint.config.errors import ConfigError
from torchmemlint.immutable import immutable
from torchmemlint.regular import is_within
from torchmemlint.source.wildcards import spec_of

_WINDOWS = re.compile(r"\\[\w.]|^[A-Za-z]:")  # no letter needs to be escaped


@immutable()
class Rooted:
    """A pattern or path that another configuration gives, or the command line: relative to another folder."""

    text: str
    folder: Path

    def __str__(self) -> str:
        return self.text


Text = str | Rooted  # a string is relative to the folder of the settings that hold it


def rooted(text: Text, folder: Path) -> Rooted:
    """The same, whatever settings it comes to stand in."""
    return text if isinstance(text, Rooted) else Rooted(text, folder)


def matches(pattern: Text, path: str, root: Path) -> bool:
    """Whether one pattern, which may begin with `!` for all other files, matches the file at an absolute path."""
    text, folder = _parts(pattern, root)
    negated = text.startswith("!")
    return _spec((text[1:] if negated else text,)).match_file(relative(path, folder)) is not negated


def any_matches(patterns: Iterable[Text], path: str, root: Path, *, is_directory: bool) -> bool:
    """Whether the patterns together match an absolute path; a later one with `!` takes back what an earlier has."""
    by_folder: dict[Path, list[str]] = {}
    for pattern in patterns:
        text, folder = _parts(pattern, root)
        by_folder.setdefault(folder, []).append(text)
    end = "/" if is_directory else ""
    return any(_spec(tuple(texts)).match_file(relative(path, folder) + end) for folder, texts in by_folder.items())


def validate(pattern: Text, source: Path | None) -> None:
    """Raise `ConfigError` for what is no pattern."""
    text = str(pattern)
    try:
        if _WINDOWS.search(text):
            raise ValueError("folders are parted by `/`, on Windows as well")
        _spec((text.removeprefix("!"),))
    except ValueError as error:
        raise ConfigError(f"{source or 'command line'}: invalid file pattern `{text}`: {error}") from None


def relative(path: str, root: PurePath) -> str:
    """An absolute path relative to `root` with forward slashes; of a path outside, only its name."""
    whole = type(root)(path)
    try:
        return whole.relative_to(root).as_posix()
    except ValueError:
        return whole.name


_ELSEWHERE = {
    "cache-dir": "`--cache-dir` and TORCHMEMLINT_CACHE_DIR may name another place",
    "baseline": "`--baseline` may name another place",
    "measurements": "`verify --record-file` may name another place",
}


def below(key: str, given: Text | None, root: Path, source: Path | None, default: str = "") -> Path | None:
    """What a configuration names for us to read or write: whose code is checked has no say in what lies elsewhere.

    Neither by dots nor by links, not even under the name that is the default.
    """
    text, root = _parts(given or default, root)
    path = Path(os.path.normpath(root / Path(text).expanduser()))
    if given is None and not (default and path.is_symlink()):
        return None
    if not path.is_relative_to(root) or path == root or not is_within(path, root):
        raise ConfigError(f"{source or 'command line'}: `{key}` leads out of {root}: {_ELSEWHERE[key]}")
    return path if given is not None else None


def _parts(text: Text, root: Path) -> tuple[str, Path]:
    return (text.text, text.folder) if isinstance(text, Rooted) else (text, root)


@lru_cache(maxsize=512)
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    return spec_of(patterns)
