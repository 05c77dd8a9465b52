"""The run of one function: what it logs, the loops it stands in, and what a caller is given of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import (
    Bend,
    Compute,
    Effect,
    Evidence,
    Fork,
    Invoke,
    InvokeMethod,
    Ran,
    Read,
    Repeat,
    Use,
)
from torchmemlint.flow.domain.heap import BOXES, Mode, ModeOf, State
from torchmemlint.flow.domain.manners import GOING_ON, Reading, Stored
from torchmemlint.flow.domain.provenance import Provenance
from torchmemlint.flow.domain.refs import (
    Behind,
    Code,
    Context,
    External,
    Graph,
    Input,
    Key,
    Leaf,
    Loop,
    Object,
    Place,
    Point,
    Ref,
    Site,
    Source,
    root,
)
from torchmemlint.flow.domain.values import NO_SOURCES, NOTHING, SOLE, UNKNOWN, Value
from torchmemlint.flow.ir.ops import Function, Op, Parameter, Unit
from torchmemlint.flow.names.index import Index

_CALLS = frozenset({Invoke, InvokeMethod, Repeat, Fork})
EFFECT_LIMIT = 1500  # effects of a function, or one for each temporary; more are dropped, and `cut` says so


@dataclass(slots=True, eq=False)
class Written:
    """One write of a place in the current round of a loop."""

    point: Point
    sources: frozenset[Source]  # of all that is stored, reachable from it
    stored: Stored
    strong: bool
    before: frozenset[Source] = NO_SOURCES  # of what the place held until then
    hook: bool = False  # by a hook
    adds: bool = False  # one more element, beside those that are there
    part: bool = False  # a list of some of the elements of another one
    often: bool = False  # under a test that says that it happens once in a few times
    spent: frozenset[Source] = NO_SOURCES  # by then
    boxes: frozenset[Ref] = frozenset()  # what is added and may be filled later


@dataclass(slots=True, eq=False)
class Summary:
    """A function's run with symbols for its inputs, as its callers need it."""

    function: Function
    returned: Value
    yielded: Value
    yield_mode: Mode | ModeOf
    effects: list[Effect]
    edges: list[tuple[Ref, Key, Value]]  # what the objects that it made hold, as far as callers can see them
    parents: dict[Source, set[Source]]
    symbols: list[Behind]  # those that callers must replace, shallow ones first
    escapes: bool  # is what was made here handed to what is not known, which may change it before it is read?
    followed: dict[Summary, Mode | ModeOf]  # of what it calls, and in which mode
    cut: bool  # was a part of it not run?


@dataclass(slots=True, eq=False)
class Frame:
    """The run of one function."""

    function: Function
    machine: Machine
    own: Ref  # where variables live that nested functions share, and those of a module
    provenance: Provenance = field(default_factory=Provenance)
    effects: list[Effect] = field(default_factory=list)
    reads: dict[Reading, set[Source]] = field(default_factory=dict)
    read_in: dict[Loop, set[Source]] = field(default_factory=dict)
    bent: set[Source] = field(default_factory=set)  # of these, something was computed that is no weighted sum of them
    computing: dict[tuple[Source, Site], Point] = field(default_factory=dict)  # of these, in a function: where first
    tensors: set[Ref] = field(default_factory=set)  # symbols that were used as only tensors can be
    loops: list[Loop] = field(default_factory=list)
    writes: dict[Loop, dict[Place, list[Written]]] = field(default_factory=dict)
    erased: dict[Loop, set[Ref]] = field(default_factory=dict)
    known: dict[Loop, dict[Place, None]] = field(default_factory=dict)  # what each loop writes and may hold a graph
    surveying: bool = False  # is it the first round of a loop, in which those in it are run but once?
    shortened: bool = False  # was one of those not run to its end?
    items: dict[Loop, set[Ref]] = field(default_factory=dict)  # what loops took from what is not known, in turn
    bounded: set[Loop] = field(default_factory=set)  # loops over a few things that are written out
    over: dict[Loop, Value] = field(default_factory=dict)  # what other loops run over
    breaks: list[list[State]] = field(default_factory=list)
    continues: list[list[State]] = field(default_factory=list)
    exits: list[State] = field(default_factory=list)
    raised: list[list[State]] = field(default_factory=list)
    context: Context = ()  # the calls that led here, where it is run as a part of its caller
    temps: list[Value] = field(default_factory=list)
    returned: Value = NOTHING
    yielded: Value = NOTHING
    yield_mode: Mode | ModeOf = Mode.CALLER
    replaced: dict[Ref, Mode | ModeOf] = field(default_factory=dict)  # by a setter of the gradient mode, as a context
    inside: list[Graph | None] = field(default_factory=list)  # forward passes that are being run; None: frozen ones
    applying: int = 0  # summaries that are being applied: their objects are not seen from here
    hooks: int = 0  # hooks that are being run
    missing: frozenset[str] = frozenset()  # attributes and variables that are made here because there are none
    often: int = 0  # blocks around that are run once in a few times
    calls: int = 0  # of what is not known, so far
    followed: dict[Summary, Mode | ModeOf] = field(default_factory=dict)  # of what was called, and in which mode
    ran: list[Effect] | None = None  # the effects among which it is noted that a module was run
    guarded: int = 0  # blocks without gradients that were entered, so far
    entry: bool = False  # is nothing outside of it?
    cut: bool = False  # was a part of it not run, because it would have been too much or too deep?
    keys: set[Ref] = field(default_factory=set)  # symbols that something was stored under
    reads_back: bool = False  # does it look into what it made and gave to code that only its caller may know?

    def at(self, op: Op) -> Point:
        """Return where an operation of this function happens."""
        return Point(op, self.context)

    def log(self, effect: Effect) -> None:
        """Record an effect."""
        if type(effect) in _CALLS:
            self.calls += 1
        if type(effect) is Use and effect.evidence in (Evidence.TENSOR, Evidence.LOSS):
            self.tensors.add(effect.reference)
        if type(effect) is Read:  # their order does not matter: one of each kind is enough
            self.read(effect.sources, effect.reading)
        elif len(self.effects) < max(EFFECT_LIMIT, self.function.temps):
            self.effects.append(effect)
        else:
            self.cut = True

    def note_run(self, point: Point) -> None:
        """Record that a module is run which begins no graph of its own: once where nothing is handled that fails."""
        if self.ran is not self.effects or any(op.owner.handles for op in point.chain()):
            self.ran = self.effects
            self.log(Ran(point))

    def is_tensor(self, value: Value) -> bool:
        """Is a value one tensor, on all paths, as far as it was used until now?"""
        return value.constant is SOLE and not value.open and value.refs <= self.tensors

    def kind(self, value: Value) -> Stored:
        """Return what a place keeps that a value is put into; what may be a list or so is not detached."""
        if not value.graph or any(type(one) is Object and one.kind in BOXES for one in value.refs):
            return Stored.HOLDER
        return Stored.TENSOR if self.is_tensor(value) else Stored.GRAPH

    def read(self, sources: frozenset[Source], reading: Reading) -> None:
        """Record that sources were read."""
        if sources:
            self.reads.setdefault(reading, set()).update(sources)
            for loop in self.loops if reading not in GOING_ON else ():
                self.read_in.setdefault(loop, set()).update(sources)

    def all_effects(self) -> list[Effect]:
        """Return what was recorded, with what was read as one effect for each way of reading."""
        if not self.function.body:
            return []
        point = Point(self.function.body[0])
        reads = [Read(point, frozenset(sources), reading) for reading, sources in self.reads.items()]
        bent = [Bend(point, frozenset(self.bent))] if self.bent else []
        computing = [Compute(at, source) for (source, _), at in self.computing.items()]
        return [*self.effects, *reads, *bent, *computing]

    def bend(self, sources: Iterable[Source]) -> None:
        """Record that something was computed of sources that is no weighted sum of them; of a pass, all is computed."""
        self.bent.update(source for source in sources if type(source) not in (Graph, Leaf))

    def compute(self, sources: Iterable[Source], point: Point) -> None:
        """Record that a function computes something of sources that it was given, with gradients on."""
        function = point.site.owner if isinstance(point.site, Op) else point.site
        for source in sources:
            if function is not self.function or type(root(source)) is Input:
                self.computing.setdefault((source, function), point)

    def arise(self, source: Source) -> None:
        """Record that a source comes into being here: in this iteration of every loop around it."""
        self.provenance.arise(source, self.loops)

    def wrote(self, place: Place, written: Written) -> None:
        """Record a write for the loops around it."""
        written.hook, written.often = self.hooks > 0, self.often > 0
        for loop in self.loops:
            self.writes[loop].setdefault(place, []).append(written)

    def gave_up(self, holder: Ref) -> None:
        """Record for the loops around it that a holder is emptied, shortened or replaced."""
        for loop in self.loops:
            self.erased[loop].add(holder)


@dataclass(slots=True, eq=False)
class Part:
    """A part of a run: an object that is made, or a network's pass."""

    is_short: bool = False  # was it not run to its end?


class Machine(Protocol):
    """What the engine's parts, and the models of libraries, ask of each other."""

    index: Index
    active: list[Function]  # whose summaries are being applied

    def summary(self, function: Function, bound: dict[Ref, Value], state: State) -> Summary | None:
        """Return the summary of a function for what its parameters are given; None while it is being made."""

    def end_of(self, unit: Unit) -> State:
        """Return the state that a module leaves which is imported; while it is being run, what it has come to."""

    def leave(self, function: Function, mode: Mode | ModeOf) -> None:
        """Note that a function was called in a mode, but not followed."""

    def give(self, function: Function, bound: dict[Ref, Value]) -> None:
        """Note which networks a function is given that may have to be run by itself."""

    def is_to_repeat(self, frame: Frame, function: Function) -> bool:
        """Does a call begin a circle of functions that call each other, and is nothing yet that repeats it?"""

    def is_unfinished(self, function: Function) -> bool:
        """Is a summary of it being made? That is made once more, then."""

    def default(self, state: State, code: Code, parameter: Parameter) -> Value:
        """Return what a parameter is that is not given."""

    def spend(self, effects: int, state: State) -> None:
        """Count work."""

    def part(self, frame: Frame, network: Object | None = None) -> AbstractContextManager[Part]:
        """Make an object, or run a network, with two thirds of the work that is left, if that was enough before."""

    def may_train(self, summary: Summary) -> bool:
        """Does a function run a network or train one, or may it where it was not followed to its end?"""

    def is_exhausted(self) -> bool:
        """Has the entry, or the function that is being summarised, used up its share of work?"""

    def call(self, frame: Frame, state: State, callee: Value, arguments: Arguments, point: Point) -> Value:
        """Return the value of a call, with all that it does to the state."""

    def call_method(
        self, frame: Frame, state: State, receiver: Value, name: str, arguments: Arguments, point: Point
    ) -> Value:
        """Return the value of a call of a method."""

    def attribute(self, frame: Frame, state: State, base: Value, name: Key, point: Point) -> Value:
        """Return `base.name`; for symbolic paths the name may be a key or the element."""

    def item(self, frame: Frame, state: State, base: Value, key: Key, point: Point) -> Value:
        """Return `base[key]`."""

    def advance(self, frame: Frame, state: State, source: Value, point: Point) -> Value:
        """Return the item of one round of the innermost loop."""

    def iterate(self, frame: Frame, state: State, source: Value, point: Point) -> Value:
        """Return one item of an iterable, made now."""

    def consume(self, frame: Frame, state: State, source: Value, box: Value, point: Point) -> Value:
        """Put every item of an iterable into a box, as the loop that it is. Return any of them."""

    def write(
        self, frame: Frame, state: State, base: Value, key: Key, value: Value, point: Point, weak: bool = False
    ) -> None:
        """Put a value under a key of all that base may be."""

    def run_loop(
        self, frame: Frame, state: State, loop: Loop, body: Callable[[State], None], places: tuple[Place, ...] = ()
    ) -> None:
        """Run a body until its head is stable, and leave the state after the loop."""

    def run_body(self, frame: Frame, state: State) -> None:
        """Run the body of a frame's function, and join all ways out of it."""

    def postpone(self, frame: Frame, state: State, callee: Value, arguments: Arguments, point: Point) -> Value:
        """Leave a call to the caller, who knows more of the arguments; return a symbol for its result."""


@dataclass(slots=True)
class CallSite:
    """One call, as a model sees it."""

    frame: Frame
    state: State
    point: Point
    arguments: Arguments

    @property
    def machine(self) -> Machine:
        """What runs it."""
        return self.frame.machine

    def value(self, index: int, name: str = "") -> Value:
        """Return one argument; NOTHING if it is not given."""
        return self.arguments.value(index, name)

    def constant(self, index: int, name: str, default: Any) -> Any:
        """Return an argument's constant; the default if it is not given, Ellipsis if it is not known."""
        return self.arguments.constant(index, name, default)

    def call(self, callee: Value, *positional: Value) -> Value:
        """Call something with these arguments."""
        return self.machine.call(self.frame, self.state, callee, Arguments(list(positional)), self.point)

    def write(self, base: Value, key: Key, value: Value, weak: bool = False) -> None:
        """Put a value under a key."""
        self.machine.write(self.frame, self.state, base, key, value, self.point, weak)

    def item(self, base: Value, key: Key) -> Value:
        """Return `base[key]`."""
        return self.machine.item(self.frame, self.state, base, key, self.point)

    def iterate(self, source: Value) -> Value:
        """Return one item of an iterable."""
        return self.machine.iterate(self.frame, self.state, source, self.point)

    def postpone(self, qualified: str) -> Value:
        """Leave the call of a library's function to the caller, who knows more of the arguments."""
        callee = Value(External.of(qualified).alone)
        return self.machine.postpone(self.frame, self.state, callee, self.arguments, self.point)

    @property
    def knows_more(self) -> bool:
        """May a caller know more of what is symbolic here?"""
        return not self.frame.entry

    def consume(self, source: Value, box: Value = NOTHING) -> Value:
        """Consume an iterable as the loop that it is."""
        return self.machine.consume(self.frame, self.state, source, box, self.point)


def fresh_temps(function: Function) -> list[Value]:
    """Return the temporaries of a run that has not begun."""
    return [UNKNOWN] * function.temps


Transfer = Callable[[Frame, State, Any], None]
