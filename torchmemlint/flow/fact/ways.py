"""Ways: a function's blocks in the order in which they may be run, branches side by side and loops for two rounds.

What names hold on them are versions: a tensor as an operation has left it. One that is overwritten is a new version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from torchmemlint.flow.fact.layers import Layer, Layers
from torchmemlint.flow.fact.reading import Building, Reading
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import Break, Continue, For, If, Raise, Return, Try, While, With
from torchmemlint.flow.ir.ops import Op, Span
from torchmemlint.flow.ir.places import Temp
from torchmemlint.immutable import immutable
from torchmemlint.knowledge.contracts import Contracts

_ROUNDS = 2
_SWITCH = "training"
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


def _met(*ways: State | None) -> State | None:
    """Return what holds where ways meet."""
    return reduce(joined, ways)


class Ways:
    """Goes all ways through a function; what operations do is left to subclasses."""

    def __init__(self, reading: Reading, known: Contracts) -> None:
        self.reading = reading
        self.loops: tuple[Op, ...] = ()  # around the place that has been come to, outer ones first
        self._known = known
        self._left: list[tuple[list[State], list[State]]] = []  # of each loop: where it was left, and begun again
        decorators = reading.function.decorators
        self._state: State | None = State(off=any(decorator.name in known.off for decorator in decorators))

    @property
    def state(self) -> State:
        """What holds at the place that has been come to."""
        assert self._state is not None
        return self._state

    def run(self, block: Iterable[Op]) -> None:
        """Go through a block, up to where it is left."""
        for op in block:
            if self._state is None:
                return
            match op:
                case If():
                    self._if(op)
                case For():
                    self.iterate(op)
                case While():
                    self.repeat(op, lambda op=op: self.run(op.head), op.body, op.orelse)  # type: ignore[misc]
                case Try():
                    self._try(op)
                case With():
                    self._with(op)
                case Break() | Continue():
                    self._leave(op)
                case Return() | Raise():
                    self.step(op)
                    self._state = None
                case _:
                    self.step(op)

    def step(self, op: Op) -> None:
        """Go past an operation without blocks."""

    def iterate(self, op: For) -> None:
        """Go through a loop over something."""

    def repeat(self, op: Op, begin: Callable[[], None], body: list[Op], orelse: list[Op]) -> None:
        """Go through the rounds of a loop, which may have none."""
        out: State | None = self.state.copy()
        left, again = list[State](), list[State]()
        self.loops = (*self.loops, op)
        self._left.append((left, again))
        for _ in range(_ROUNDS):
            if self._state is None:
                break
            begin()
            self.run(body)
            self._state = _met(*again, self._state)
            again.clear()
            out = joined(out, self._state)
        self._left.pop()
        self.loops = self.loops[:-1]
        self._state = _met(*left, self._branch(out, orelse))

    def _branch(self, start: State | None, block: list[Op]) -> State | None:
        """Go through a block. The state that it starts from is changed."""
        self._state = start
        self.run(block)
        return self._state

    def _if(self, op: If) -> None:
        other = self.state
        start = other.copy()
        ends = []
        for begin, block, holds in ((start, op.then, True), (other, op.orelse, False)):
            begin.evaluating = begin.evaluating or self._is_evaluating(op.test, holds)
            ends.append(self._branch(begin, block))
        self._state = joined(*ends)

    def _is_evaluating(self, test: Temp, holds: bool) -> bool:
        """Is the module known not to be trained where a test holds, or does not?"""
        match self.reading.made.get(test):
            case ops.GetAttribute(base=base, name=name) if name == _SWITCH:
                return not holds and self.reading.is_self(base)
            case ops.Compare(operator="not", operands=(inner,)):
                return self._is_evaluating(inner, not holds)
            case ops.Choose(operator=operator, operands=operands) if holds is (operator == "and"):
                return any(self._is_evaluating(operand, holds) for operand in operands)
        return False

    def _leave(self, op: Break | Continue) -> None:
        if self._left:
            self._left[-1][0 if type(op) is Break else 1].append(self.state)
        self._state = None

    def _try(self, op: Try) -> None:
        start = self.state
        done = self._branch(start.copy(), op.body)
        failed = joined(start, done) or start
        ends = [self._branch(done, op.orelse)]
        ends += [self._branch(failed.copy(), handler.body) for handler in op.handlers]
        end = _met(*ends)
        self._state = self._branch(end if end is not None else failed, op.final)
        if end is None:
            self._state = None

    def _with(self, op: With) -> None:
        outer = self.state.off
        for context in op.contexts:
            made = self.reading.made.get(context)
            name = self.reading.called(made) if isinstance(made, ops.Call | ops.CallMethod) else ""
            if name in self._known.off:
                self.state.off = True
            elif name in self._known.on:
                self.state.off = False
        self.run(op.body)
        if self._state is not None:
            self._state.off = outer
