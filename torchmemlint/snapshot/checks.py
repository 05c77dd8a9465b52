"""The parts of a memory snapshot, taken for what they are only if they are that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchmemlint.snapshot.records import Annotation, Stack

NO_STACK = Stack(0)


def items(value: Any) -> Any:
    """A list's items; one that is empty is read as a call stack without frames."""
    if type(value) is Stack and value == NO_STACK:
        return ()
    if not isinstance(value, list | tuple):
        raise TypeError(f"{type(value).__name__} is no list")
    return value


def count(value: Any) -> int:
    """A count or an address. Raises ValueError for what is neither."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is no count or address")
    return value


def plain(value: Any) -> dict[str, Any]:
    """The settings among some values."""
    return {str(key): one for key, one in value.items() if isinstance(one, str | int | float | bool)}


def annotation(made: Mapping[str, Any]) -> Annotation:
    """A mark that the program set."""
    return Annotation(
        str(made.get("name", "")), made.get("stage") == "START", int(made.get("device", 0)), int(made.get("time_us", 0))
    )
