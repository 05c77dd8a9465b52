"""Dataclasses to JSON and back, by their type hints. JSON and no pickle: reading a cache must not run anything."""

from __future__ import annotations

import enum
import types
import typing
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def dump(value: Any) -> Any:
    """Plain lists, strings and numbers for a value made of dataclasses, enums, paths and tuples of these."""
    if is_dataclass(value) and not isinstance(value, type):
        return [dump(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple | list):
        return [dump(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} cannot be kept")


def load(kind: type[T], data: Any) -> T:
    """The value of a type that `dump` made `data` of. Raises TypeError or ValueError where it is of another shape."""
    found: T = _load(kind, data)
    return found


def _load(kind: Any, data: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        if data is None:
            return None
        (kind,) = (option for option in typing.get_args(kind) if option is not type(None))
        return _load(kind, data)
    if origin is tuple:
        inner, *rest = typing.get_args(kind)
        if rest == [...]:
            return tuple(_load(inner, item) for item in _listed(data))
        return tuple(_load(one, item) for one, item in zip((inner, *rest), _listed(data), strict=True))
    assert isinstance(kind, type)
    if is_dataclass(kind):
        return kind(*(_load(hint, item) for hint, item in zip(_hints(kind), _listed(data), strict=True)))
    if issubclass(kind, enum.Enum | Path):
        return kind(data)
    if not isinstance(data, (int, float) if kind is float else kind):
        raise TypeError(f"expected {kind.__name__}, found {type(data).__name__}")
    return data


def _listed(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise TypeError(f"expected a list, found {type(data).__name__}")
    return data


@cache
def _hints(kind: type) -> tuple[Any, ...]:
    hints = typing.get_type_hints(kind)
    return tuple(hints[field.name] for field in fields(kind))
