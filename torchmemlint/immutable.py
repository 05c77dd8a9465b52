"""Dataclasses that nobody changes once they are made, cheap to define and cheap to make.

`dataclass(frozen=True)` sets every field by way of `object.__setattr__`, which takes more than twice as long; of what
the analysis works with a run makes hundreds of thousands. So it is the type checker that sees to it that nobody changes
them. What users and plugins are handed, findings (`torchmemlint.findings`), is frozen at run time, too: one rule cannot
change what the next one sees.

`dataclass` compiles every method of every class from text, a tenth of a millisecond for each, before a run begins.
Here that is done for the one that must be fast, `__init__`; what compares, hashes and shows is shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

_T = TypeVar("_T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def immutable(*, eq: bool = True, repr: bool = True, frozen: bool = False) -> Callable[[type[_T]], type[_T]]:
        """As `dataclass(frozen=True, slots=True)`."""

else:

    def immutable(*, eq=True, repr=True, frozen=False):
        """Compared and hashed by its fields, unless `eq` is False. `frozen`: changing one is an error in a run, too."""

        def made(cls):
            own = vars(cls)
            cls = dataclass(eq=False, repr=False, slots=True, frozen=frozen)(cls)
            if eq:
                values = _getter([field.name for field in fields(cls) if field.compare])
                cls.__eq__ = _equality(values)
                cls.__hash__ = _hashing(values)
            if repr and "__repr__" not in own:
                cls.__repr__ = _shown
            return cls

        return made


def _getter(names: list[str]) -> Callable[[object], object]:
    return attrgetter(*names) if names else lambda _: ()


def _equality(values: Callable[[object], object]) -> Callable[[object, object], bool]:
    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hashing(values: Callable[[object], object]) -> Callable[[object], int]:
    def hashed(self: object) -> int:
        return hash(values(self))

    return hashed


@recursive_repr()
def _shown(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({shown})"
