"""Dataclasses that nobody changes once they are made: the type checker sees to that, and a run does not pay for it.

`dataclass(frozen=True)` sets every field by way of `object.__setattr__`, which takes more than twice as long; of the
values of the interpreter a run makes hundreds of thousands. Each class that a run defines before it begins also takes a
sixth of a millisecond less. What users and plugins are handed, findings (`torchmemlint.findings`) and facts
(`torchmemlint.flow.facts`), is frozen at run time, too: one rule cannot change what the next one sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

_T = TypeVar("_T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    @dataclass_transform(frozen_default=True)
    def immutable(*, eq: bool = True, repr: bool = True) -> Callable[[type[_T]], type[_T]]:
        """As `dataclass(frozen=True, slots=True)`."""

else:

    def immutable(*, eq=True, repr=True):
        """Compared and hashed by its fields, unless `eq` is False; that one changes is an error of types alone."""
        return dataclass(eq=eq, repr=repr, slots=True, unsafe_hash=eq)
