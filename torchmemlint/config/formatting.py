"""How a project lays out its lines, as its formatter, or else its linters, are told."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from torchmemlint.immutable import immutable
from torchmemlint.regular import text_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LENGTH = 88  # of black's and ruff's lines, if nothing is said
_SHORTEST = 20

_LINTERS = (
    *("setup.cfg", "tox.ini", ".flake8", ".pycodestyle", ".style.yapf"),
    *(".isort.cfg", "pyproject.toml", ".pylintrc", "pylintrc", ".editorconfig"),
)
_IN_LINTERS = re.compile(r"^[ \t]*(?:(?:max[-_])?line[-_]length|column_limit)[ \t]*[=:][ \t]*(\d+)", re.MULTILINE)
_IN_HOOKS = re.compile(r"--line-length[=\s,'\"]+(\d+)")


@immutable()
class Formatting:
    """How lines are laid out."""

    length: int = _LENGTH  # of a line, at most
    is_black: bool = False  # rather than ruff's where the two differ
    step: str = "    "  # of indentation
    is_said: bool = True  # does some file of the project say so?


USUAL = Formatting(is_said=False)


def formatting(folder: Path) -> Formatting:
    """How a folder's files are laid out: the nearest formatter's setting counts, or else the nearest linter's."""
    folders = list(_upwards(folder))
    found = next((one for around in folders for one in _of_formatters(around)), None)
    if found is None:
        lengths = (length for around in folders for length in _of_linters(around))
        length = next(lengths, None)
        found = USUAL if length is None else Formatting(length)
    return found if found.length >= _SHORTEST else USUAL


def _upwards(folder: Path) -> Iterator[Path]:
    """Yield a folder and those around it, up to that of the repository."""
    for one in (folder, *folder.parents):
        yield one
        if (one / ".git").exists():
            return


def _of_formatters(folder: Path) -> Iterator[Formatting]:
    for name in (".ruff.toml", "ruff.toml"):
        if (table := _toml(folder / name)) is not None:
            yield _ruff(table)
    tool = (_toml(folder / "pyproject.toml") or {}).get("tool")
    black, ruff = (tool.get(name) if isinstance(tool, Mapping) else None for name in ("black", "ruff"))
    if isinstance(black, Mapping):
        yield Formatting(_length(black), is_black=True)
    if isinstance(ruff, Mapping):
        yield _ruff(ruff)
    hooks = _text(folder / ".pre-commit-config.yaml")
    is_black = "id: black" in hooks
    yield from (Formatting(int(length), is_black) for length in _IN_HOOKS.findall(hooks))
    if is_black:
        yield Formatting(is_black=True)


def _ruff(table: Mapping[str, object]) -> Formatting:
    width, style = table.get("indent-width"), table.get("format")
    tabs = isinstance(style, Mapping) and style.get("indent-style") == "tab"
    return Formatting(_length(table), step="\t" if tabs else " " * (width if isinstance(width, int) else 4))


def _of_linters(folder: Path) -> Iterator[int]:
    for name in _LINTERS:
        yield from map(int, _IN_LINTERS.findall(_text(folder / name)))


def _length(section: Mapping[str, object]) -> int:
    given = section.get("line-length", section.get("line_length"))
    return given if isinstance(given, int) else _LENGTH


def _toml(path: Path) -> dict[str, object] | None:
    text = _text(path)
    if not text:
        return {} if path.is_file() else None
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _text(path: Path) -> str:
    try:
        return text_of(path)
    except (OSError, UnicodeDecodeError):
        return ""
