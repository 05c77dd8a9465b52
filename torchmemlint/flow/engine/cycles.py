"""Functions that call each other in a circle, as far as runs have shown it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from torchmemlint.flow.ir.ops import Function

_NONE: frozenset[Function] = frozenset()


class Cycles:
    """Which functions belong to one circle. A call of one from another of its circle is a call within itself."""

    def __init__(self) -> None:
        self._of: dict[Function, set[Function]] = {}

    def of(self, function: Function) -> Collection[Function]:
        """Return all functions of a function's circle; none if it has not been seen to call itself."""
        return self._of.get(function, _NONE)

    def note(self, active: Sequence[Function], function: Function) -> None:
        """Note a call: if one of its circle is at work, all that was called since belongs to it, too."""
        known = self._of.get(function) or {function}
        first = next((n for n, caller in enumerate(active) if caller in known), None)
        if first is None or (known.issuperset(active[first:]) and function in self._of):
            return
        found = known.union(*(self._of.get(caller, {caller}) for caller in active[first:]))
        self._of.update(dict.fromkeys(found, found))
