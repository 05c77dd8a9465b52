"""Dataclasses to JSON and back, by their type hints. JSON and no pickle: reading a cache must not run anything."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

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
    key: Any = kind
    found: T = _loader(key)(data)
    return found


_Loader: TypeAlias = Callable[[Any], Any]


@cache
def _loader(kind: Any) -> _Loader:
    """What makes values of that type: looked up once, as a cache holds thousands of them."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        (there,) = (option for option in typing.get_args(kind) if option is not type(None))
        inner = _loader(there)
        return lambda data: None if data is None else inner(data)
    if origin is tuple:
        first, *rest = typing.get_args(kind)
        if rest == [...]:
            item = _loader(first)
            return lambda data: tuple(map(item, _listed(data)))
        loaders = [_loader(one) for one in (first, *rest)]
        return lambda data: tuple(_each(loaders, data))
    assert isinstance(kind, type)
    if is_dataclass(kind):
        return lambda data: kind(*_each(_of_fields(kind), data))  # its fields later: one may be of its own type
    if issubclass(kind, enum.Enum | Path):
        return kind
    return _plain(kind)


@cache
def _of_fields(kind: Any) -> list[_Loader]:
    hints = typing.get_type_hints(kind)
    return [_loader(hints[field.name]) for field in fields(kind)]


def _each(loaders: list[_Loader], data: Any) -> list[Any]:
    return [loader(item) for loader, item in zip(loaders, _listed(data), strict=True)]


def _plain(kind: type) -> _Loader:
    allowed = (int, float) if kind is float else kind

    def check(data: Any) -> Any:
        if not isinstance(data, allowed):
            raise TypeError(f"expected {kind.__name__}, found {type(data).__name__}")
        return data

    return check


def _listed(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise TypeError(f"expected a list, found {type(data).__name__}")
    return data
