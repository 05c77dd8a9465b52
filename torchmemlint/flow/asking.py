"""What the walks of one pass asked for, and what was found out after that.

A pass walks each function once. What a later walk finds out, that a module is frozen, that a backward runs through a
value, what another method keeps, would have been news to an earlier one only if that one had asked. Only then the
functions are walked again (`Interpreter.is_outdated`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torchmemlint.flow.heap import ANY, Slot
from torchmemlint.flow.program import Function
from torchmemlint.flow.values import Graph, Tensor, Value
from torchmemlint.syntax.source_module import Site

_FLAGS = ("training", "frozen")  # of modules, in the heap


@dataclass(slots=True)
class Asked:
    """The questions of one pass, and the answers that came late."""

    slots: set[Slot] = field(default_factory=set)  # of what objects hold between calls
    own: dict[int, Function | None] = field(default_factory=dict)  # containers: the walk that made and looked at each
    places: set[tuple[Site | None, int | None]] = field(default_factory=set)  # proofs; None: whatever the index
    names: set[str] = field(default_factory=set)  # of globals
    flags: bool = False  # was a module's flag set after somebody had asked for it?
    other: bool = False  # was a proof, a hook or a global found?
    learned: set[Slot] = field(default_factory=set)  # slots with a graph that is surer than when they were asked for
    rewritten: set[Slot] = field(default_factory=set)  # slots that a walk asks for, and is first seen to write
    _written: set[Slot] = field(default_factory=set)  # by the function being walked, which had not been seen to

    def clear(self) -> None:
        """A pass begins."""
        for known in (self.slots, self.own, self.places, self.names, self.learned, self.rewritten, self._written):
            known.clear()
        self.flags = self.other = False

    def learn(self, slot: Slot, known: Value | None, now: Value, walking: Function | None) -> None:
        """What an object holds between calls is found by the walk of a function."""
        elsewhere = self.own.get(slot[0], walking) is not walking
        if not elsewhere and slot not in self.slots and (slot[0], ANY) not in self.slots:
            return
        if slot[1] in _FLAGS:
            self.flags |= known is None
        elif strength(now) > strength(known):
            self.learned.add(slot)

    def write(self, slot: Slot) -> None:
        """The function being walked writes a slot, which it had not been seen to."""
        self._written.add(slot)

    def leave(self) -> None:
        """The walk of a function ends: its next call begins with what this one leaves."""
        self.rewritten |= self._written & self.slots
        self._written.clear()

    def prove(self, place: tuple[Site, int]) -> None:
        """A place is proven that was not before."""
        self.other |= place in self.places or (place[1] >= 0 and (place[0], None) in self.places)


def strength(value: Value | None) -> int:
    """How sure it is that a value has a graph: 2 if it has, 1 if it may."""
    if not isinstance(value, Tensor):
        return 0
    return 2 if value.carries_graph else 1 if value.graph is Graph.UNKNOWN else 0
