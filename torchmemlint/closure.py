"""What some things lead to, by whatever leads on from each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def closure(start: Iterable[T], following: Callable[[T], Iterable[T]]) -> set[T]:
    """Return some things with all that they lead to, directly or not."""
    found = set(start)
    todo = list(found)
    while todo:
        new = set(following(todo.pop())) - found
        found |= new
        todo += new
    return found
