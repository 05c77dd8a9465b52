"""The summaries of a project's functions, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import takewhile

from torchmemlint.flow.domain.frame import Summary
from torchmemlint.flow.domain.heap import State
from torchmemlint.flow.domain.refs import Loop
from torchmemlint.flow.engine.binding import Binding, Known, constants
from torchmemlint.flow.ir.ops import Function

_SPECIALISATIONS = 8  # of one function

_Key = tuple[Function, Known]
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


class Store:
    """Has one summary of a function for each way in which what it tests is known.

    Where functions call each other in a circle, one is made twice: at first with nothing in the place of what is not
    finished, then with what that gave. What the others were in the first round is forgotten. It is always the same one,
    whichever is asked for first.
    """

    def __init__(self, make: Callable[[Function, dict[str, object]], Summary]) -> None:
        self._make = make
        self._made: dict[_Key, Summary | None] = {}  # None where it is not finished, in the order of their beginning
        self._again: set[_Key] = set()  # asked for before they were finished
        self._making: list[_Key] = []
        self._known: dict[Function, list[Known]] = {}
        self._cycles = Cycles()

    def begin(self) -> None:
        """Begin with other files: these may know other constants."""
        self._known = {}

    def of(self, function: Function, bound: Binding, state: State, active: Sequence[Function]) -> Summary | None:
        """Return a function's summary for what its parameters are given; None if it is not finished.

        `active` are the functions that are at work, the innermost last.
        """
        key = (function, self._specialised(function, bound, state))
        if key not in self._made:
            self._add(key)
        elif self._made[key] is None:
            self._again.add(key)
        if self._made[key] is None or self._cycles.of(function):
            self._cycles.note(active, function)
        return self._made[key]

    def is_unfinished(self, function: Function, active: Sequence[Function]) -> bool:
        """Is a summary of it being made? That is made once more, then."""
        found = [key for key in self._making if key[0] is function and self._made[key] is None]
        self._again.update(found)
        if found:
            self._cycles.note(active, function)
        return bool(found)

    def is_to_repeat(self, function: Function, active: Sequence[Function], loops: Iterable[Loop]) -> bool:
        """Does a call begin a circle? Calls within one that is being repeated, or will be, are a part of it."""
        cycle = self._cycles.of(function)
        if not cycle:
            return active.count(function) > 1
        return not (self._is_part(function) or any(loop.site in cycle for loop in loops))

    def _add(self, key: _Key) -> None:
        if not self._is_asked_for_again(key):
            return
        cycle = self._cycles.of(key[0]) or (key[0],)  # by way of a module's body, which is no call
        first = min(cycle, key=lambda function: (function.unit.name, function.span))
        if first is not key[0]:
            self._forget_since(key)
            del self._made[key]
            if (first, ()) not in self._made:
                self._add((first, ()))
            if key in self._made or not self._is_asked_for_again(key):
                return
        self._forget_since(key)
        self._made[key] = self._run(key)

    def _is_asked_for_again(self, key: _Key) -> bool:
        """Make a summary. Does it lack a call within itself, and will no other of its circle be made again?"""
        self._made[key] = None
        self._again.discard(key)
        try:
            self._made[key] = self._run(key)
        finally:
            if self._made[key] is None:
                del self._made[key]
        return key in self._again and not self._is_part(key[0])

    def _run(self, key: _Key) -> Summary:
        self._making.append(key)
        try:
            return self._make(key[0], dict(key[1]))
        finally:
            self._making.pop()

    def _is_part(self, function: Function) -> bool:
        """Is the summary of one of its circle being made?"""
        cycle = self._cycles.of(function)
        return any(other in cycle for other, _ in self._making)

    def _forget_since(self, key: _Key) -> None:
        cycle = self._cycles.of(key[0])
        for other in list(takewhile(lambda made: made != key, reversed(self._made))):
            if other[0] in cycle:
                del self._made[other]

    def _specialised(self, function: Function, bound: Binding, state: State) -> Known:
        """Return the constants that a summary of its own is made for, if a function has not too many such."""
        if not function.tested and not function.around:
            return ()
        result = constants(function, bound, state)
        seen = self._known.setdefault(function, [])
        if result not in seen:
            if len(seen) >= _SPECIALISATIONS:
                return ()
            seen.append(result)
        return result
