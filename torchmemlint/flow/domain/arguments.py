"""The actual arguments of a call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torchmemlint.flow.domain.values import NOTHING, Value, join_all


@dataclass(slots=True)
class Arguments:
    """The actual arguments of a call. `star` and `stars` are what `*x` and `**x` spread."""

    positional: list[Value] = field(default_factory=list)
    named: dict[str, Value] = field(default_factory=dict)
    star: Value | None = None
    stars: Value | None = None

    def all(self) -> list[Value]:
        """Return all values, those that are spread as a whole."""
        rest = [value for value in (self.star, self.stars) if value is not None]
        return [*self.positional, *self.named.values(), *rest]

    def rest(self) -> Arguments:
        """Return all but the first."""
        return Arguments(self.positional[1:], self.named, self.star, self.stars)

    def get(self, index: int, name: str = "") -> Value | None:
        """Return one argument by position or name; None if it is not given."""
        if index < len(self.positional):
            return self.positional[index]
        return self.named.get(name)

    def value(self, index: int, name: str = "") -> Value:
        """Return one argument; NOTHING if it is not given."""
        found = self.get(index, name)
        return NOTHING if found is None else found

    def constant(self, index: int, name: str, default: Any) -> Any:
        """Return an argument's constant; the default if it is not given, Ellipsis if it is not known."""
        found = self.get(index, name)
        if found is None:
            return default
        return found.constant if found.known else ...

    def joined(self) -> Value:
        """Return what any of the arguments may be."""
        return join_all(self.all())
