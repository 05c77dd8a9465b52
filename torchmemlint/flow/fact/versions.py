"""Versions: a tensor as an operation has left it. One that is overwritten is a new version of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torchmemlint.flow.fact.layers import Layer, Layers
from torchmemlint.flow.fact.reading import Building
from torchmemlint.flow.ir.ops import Op, Span
from torchmemlint.flow.ir.places import Temp
from torchmemlint.immutable import immutable

Version = Op | tuple[Op, int] | str  # what made it; one of several results; a parameter, or a name from outside
Value = frozenset[Version]
NOTHING: Value = frozenset()
Mark = tuple[str, Any]  # of a kind: what has happened


def in_order(value: Value) -> list[Version]:
    """Return versions as they are made in the text; those of parameters first."""

    def place(version: Version) -> tuple[Span, int, str]:
        match version:
            case str():
                return (0, 0, 0, 0), 0, version
            case (op, number):
                return op.span, number, ""
        return version.span, 0, ""

    return sorted(value, key=place)


@immutable()
class Maker:
    """What made a version."""

    names: tuple[str, ...] = ("",)  # of the operation, qualified; of each layer that it may be
    layers: Layers = ()  # if it was one
    live: bool = False  # does the version have a graph?
    loops: tuple[Op, ...] = ()  # around it, the outer ones first
    of: Value = NOTHING  # from which it was made; nothing where what a call does is not known
    over: Value = NOTHING  # of these, which were overwritten


@immutable()
class Application:
    """An activation is applied: a layer, or a function."""

    op: Building
    layer: Layer
    given: Value
    loops: tuple[Op, ...]


@dataclass(slots=True)
class State:
    """What names and temporaries hold at one place of a function."""

    held: dict[str | Temp, Value] = field(default_factory=dict)
    marks: dict[Version, frozenset[Mark]] = field(default_factory=dict)  # what has happened to versions so far
    off: bool = False  # are gradients off?
    evaluating: bool = False  # is the module known not to be trained?

    def copy(self) -> State:
        """Return a state that can be changed apart."""
        return State(dict(self.held), dict(self.marks), self.off, self.evaluating)

    def forget(self, gone: Value) -> None:
        """Drop what is marked on versions that are no more."""
        for version in gone:
            self.marks.pop(version, None)

    def mark(self, version: Version, kind: str, what: Any) -> None:
        """Note that something has happened to a version."""
        self.marks[version] = self.marks.get(version, frozenset()) | {(kind, what)}

    def unmark(self, version: Version, kind: str) -> None:
        """Drop what of a kind has happened to a version."""
        self.marks[version] = frozenset(mark for mark in self.marks.get(version, ()) if mark[0] != kind)

    def marked(self, version: Version, kind: str) -> list[Any]:
        """Return what of a kind has happened to a version."""
        return [what for known, what in self.marks.get(version, ()) if known == kind]


def joined(one: State | None, other: State | None) -> State | None:
    """Return what holds where two ways meet; None is a way that does not lead there."""
    if one is None or other is None:
        return one or other
    held = dict(one.held)
    for key, value in other.held.items():
        known = held.get(key, value)
        held[key] = known if known is value else known | value
    marks = dict(one.marks)
    for version, mark in other.marks.items():
        met = marks.get(version, mark)
        marks[version] = met if met is mark else met | mark
    return State(held, marks, one.off and other.off, one.evaluating and other.evaluating)
