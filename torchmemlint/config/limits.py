"""What the check of one file may take: the bounds that no file, however made, gets a run beyond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from torchmemlint.config.errors import ConfigError, did_you_mean
from torchmemlint.immutable import immutable

MAX_NESTING = 300  # beyond it the stack of libcst's parser may end; people write less than 50
MEGABYTE = 1_000_000  # bytes
_NOTEBOOK = 20  # how much larger a notebook may be than the programs in it: most of it are outputs

Given = tuple[tuple[str, float], ...]  # what a table says, by name


@immutable()
class Limits:
    """The limits, by the names under which they are set and reported. 0 is no limit."""

    time: float = 60  # seconds of processor time
    memory: float = 2_000  # megabytes that the check of a file may add to those of its process
    nesting: float = MAX_NESTING  # levels of statements and expressions in each other
    size: float = 10  # megabytes of source

    @property
    def bytes_of_source(self) -> int | None:
        """`size` in bytes."""
        return int(self.size * MEGABYTE) or None

    @property
    def bytes_of_notebook(self) -> int | None:
        """The same for the whole file of a notebook, with its outputs."""
        return int(self.size * MEGABYTE * _NOTEBOOK) or None

    @property
    def bytes_of_memory(self) -> int | None:
        """`memory` in bytes."""
        return int(self.memory * MEGABYTE) or None


DEFAULT = Limits()
NAMES = tuple(field.name for field in fields(Limits))
MEANINGS = {
    "time": "seconds of processor time",
    "memory": "megabytes that its process may grow by",
    "nesting": f"levels of statements and expressions in each other, {MAX_NESTING} at most",
    "size": f"megabytes of source; a notebook with its outputs may have {_NOTEBOOK} times as many",
}


def read_limits(table: object) -> Given:
    """The limits that a table sets. Raises `ConfigError` with what is wrong."""
    if not isinstance(table, Mapping):
        raise ConfigError("expected a table such as `{ time = 30 }`")
    for name, value in table.items():
        if name not in NAMES:
            raise ConfigError(f"there is no limit `{name}`.{did_you_mean(str(name), NAMES)}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"`{name}`: expected a number ({MEANINGS[name]})")
        if not 0 <= value < float("inf"):
            raise ConfigError(f"`{name}`: expected a number that is not negative, or 0 for no limit")
        if name == "nesting" and not 1 <= value <= MAX_NESTING:
            raise ConfigError(f"`nesting`: expected a number from 1 to {MAX_NESTING}, where the parsers' stack may end")
    return tuple(table.items())


def limit_of(text: str) -> Given:
    """The limit that `NAME=VALUE` sets. Raises `ConfigError`."""
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        raise ConfigError(f"expected NAME=NUMBER such as time=30, found `{text}`") from None
    return read_limits({name.strip(): number})


def limits_of(given: Given | None) -> Limits:
    """The limits that hold where these are set."""
    return replace(DEFAULT, **dict(given or ()))
