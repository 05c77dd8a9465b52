"""The engine of one project: functions run once for each way in which they are called, and their summaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torchmemlint.flow.domain import memory
from torchmemlint.flow.domain.effects import Arguments, Point
from torchmemlint.flow.domain.frame import Frame, Limits, Summary, fresh_temps
from torchmemlint.flow.domain.heap import Heap, Mode, State
from torchmemlint.flow.domain.refs import (
    Code,
    Globals,
    Input,
    Key,
    Kind,
    Loop,
    Object,
    Place,
    Ref,
    Special,
)
from torchmemlint.flow.domain.values import (
    NO_CONSTANT,
    NOTHING,
    SOME,
    UNKNOWN,
    Value,
    of,
    symbol,
)
from torchmemlint.flow.engine import access, calls, conditions, control, loops
from torchmemlint.flow.engine.summaries import summarised
from torchmemlint.flow.ir.ops import Class, Function, Parameter, Passing, Unit
from torchmemlint.flow.models import guards
from torchmemlint.flow.names.index import Index, reference

_SPECIALISATIONS = 8  # of one function
BUDGET = 40_000  # effects performed for one entry

Known = tuple[tuple[str, object], ...]  # parameters whose constants are known


@dataclass(eq=False)
class Engine:
    """Runs the functions of a project."""

    index: Index
    active: list[Function] = field(default_factory=list)
    called: set[Function] = field(default_factory=set)  # by another function of the project
    _summaries: dict[tuple[Function, Known], Summary | None] = field(default_factory=dict)
    _known: dict[Function, list[Known]] = field(default_factory=dict)
    _recursive: set[tuple[Function, Known]] = field(default_factory=set)
    _ends: dict[Unit, State | None] = field(default_factory=dict)
    _spent: int = 0

    # What its parts ask of each other.

    def call(self, frame: Frame, state: State, callee: Value, arguments: Arguments, point: Point) -> Value:
        """Return the value of a call."""
        return calls.call(frame, state, callee, arguments, point)

    def call_method(
        self, frame: Frame, state: State, receiver: Value, name: str, arguments: Arguments, point: Point
    ) -> Value:
        """Return the value of a call of a method."""
        return calls.call_method(frame, state, receiver, name, arguments, point)

    def attribute(self, frame: Frame, state: State, base: Value, name: Key, point: Point) -> Value:
        """Return `base.name`."""
        return access.attribute(frame, state, base, name, point)

    def item(self, frame: Frame, state: State, base: Value, key: Key, point: Point) -> Value:
        """Return `base[key]`."""
        return access.item(frame, state, base, key, point)

    def iterate(self, frame: Frame, state: State, source: Value, point: Point) -> Value:
        """Return one item of an iterable."""
        return access.iterate(frame, state, source, point)

    def advance(self, frame: Frame, state: State, source: Value, point: Point) -> Value:
        """Return the item of one round of the innermost loop."""
        return access.advance(frame, state, source, point)

    def consume(self, frame: Frame, state: State, source: Value, box: Value, point: Point) -> Value:
        """Put every item of an iterable into a box."""
        return access.consume(frame, state, source, box, point)

    def write(
        self, frame: Frame, state: State, base: Value, key: Key, value: Value, point: Point, weak: bool = False
    ) -> None:
        """Put a value under a key."""
        memory.write(frame, state, base, key, value, point, weak)

    def run_loop(
        self, frame: Frame, state: State, loop: Loop, body: Callable[[State], None], places: tuple[Place, ...] = ()
    ) -> None:
        """Run a loop."""
        loops.run_loop(frame, state, loop, body, places)

    def postpone(self, frame: Frame, state: State, callee: Value, arguments: Arguments, point: Point) -> Value:
        """Leave a call to the caller."""
        return calls.unknown(frame, state, callee, arguments, point)

    def resolve(self, qualified: str) -> Value | None:
        """Return what stands under a qualified name of the project."""
        return self.index.resolve(qualified)

    def default(self, state: State, code: Code, parameter: Parameter) -> Value:
        """Return what a parameter is that is not given: the default that its definition evaluated."""
        if not parameter.has_default:
            return UNKNOWN
        place: Key = ("default " + parameter.name, 0)
        found = state.heap.get(code, place)
        if found is None and type(code.frame) is Globals:
            found = self._default_of_unit(code, place)
        return UNKNOWN if found is None else found

    def _default_of_unit(self, code: Code, place: Key) -> Value | None:
        end = self.end_of(code.function.unit)
        return None if end is None else end.heap.get(code, place)

    def spend(self, effects: int) -> None:
        """Count the work of one entry."""
        self._spent += effects
        if self._spent > BUDGET:
            raise Limits

    def begin(self) -> None:
        """Begin with another entry: its share of work is whole."""
        self._spent = 0
        self.active.clear()

    def unseen_instance(self, state: State, cls: Class, site: Function) -> Value:
        """Return an instance of a class that was made elsewhere, with arguments that are not known."""
        frame = Frame(site, self, Globals.of(site.unit.name), entry=True)
        init = self.index.method(cls, "__init__")
        first = site.body[0] if site.body else cls.parent.body[0]
        arguments = Arguments()
        if init is not None:
            for parameter in init.parameters[1:]:
                if parameter.passing is Passing.POSITIONAL:
                    arguments.positional.append(symbol(Input.of(init, parameter.name)))
        return self.call(frame, state, of(reference(cls)), arguments, Point(first, (cls,)))

    # Modules.

    def end_of(self, unit: Unit) -> State | None:
        """Return the state that a module's body leaves; None while it is being run."""
        if unit not in self._ends:
            self._ends[unit] = None
            saved, self._spent = self._spent, 0
            _, state = self.run_module(unit)
            self._spent = saved
            state.dead = False
            self._ends[unit] = state
        return self._ends[unit]

    def run_module(self, unit: Unit) -> tuple[Frame, State]:
        """Run the body of a module; where that is too much, as far as it was done."""
        frame, state = self.frame(unit.module), self.start(unit.module)
        try:
            self._run(frame, state)
        except Limits:
            frame.cut = True
            frame.loops.clear()
        return frame, state

    # Summaries.

    def summary(self, function: Function, bound: dict[Ref, Value], state: State) -> Summary | None:
        """Return the summary of a function for what its parameters are given; None while it is being made."""
        self.called.add(function)
        key = (function, self._specialised(function, bound))
        if key in self._summaries:
            if self._summaries[key] is None:
                self._recursive.add(key)
            return self._summaries[key]
        self._summaries[key] = None
        frame, end = self.run(function, dict(key[1]))
        self._summaries[key] = summarised(frame, end)
        if key in self._recursive:  # once more, with what the first round found in place of nothing
            frame, end = self.run(function, dict(key[1]))
            self._summaries[key] = summarised(frame, end)
        return self._summaries[key]

    def _specialised(self, function: Function, bound: dict[Ref, Value]) -> Known:
        """Return the constants that tests of a function depend on, as far as they are known."""
        if not function.tested:
            return ()
        known: list[tuple[str, object]] = []
        for name in sorted(function.tested):
            value = bound.get(Input.of(function, name))
            if value is None:
                continue
            if value.known and isinstance(value.constant, bool | str | type(None)):
                known.append((name, value.constant))
            elif conditions.is_something(value):
                known.append((name, SOME))
        result = tuple(known)
        seen = self._known.setdefault(function, [])
        if result not in seen:
            if len(seen) >= _SPECIALISATIONS:
                return ()
            seen.append(result)
        return result

    def is_recursive(self, function: Function) -> bool:
        """Has it been seen to call itself, directly or not?"""
        return any(f is function for f, _ in self._recursive)

    def run(self, function: Function, constants: dict[str, object]) -> tuple[Frame, State]:
        """Run a function with symbols for its inputs, but for those whose constants are known."""
        frame = self.frame(function)
        state = self.start(function)
        for parameter in function.parameters:
            value = symbol(Input.of(function, parameter.name))
            constant = constants.get(parameter.name, NO_CONSTANT)
            if constant is not NO_CONSTANT:
                graph = value.graph if constant is SOME else NOTHING.graph
                value = Value(value.refs if constant is SOME else frozenset(), graph, constant)
            if parameter.name in function.shared:
                state.heap.put(frame.own, parameter.name, value)
            else:
                state.variables[parameter.name] = value
        self._run(frame, state)
        return frame, state

    def run_body(self, frame: Frame, state: State) -> None:
        """Run the body of a frame's function, and join all ways out of it."""
        control.run_block(frame, state, frame.function.body)
        for other in frame.exits:
            state.join(other)

    def _run(self, frame: Frame, state: State) -> None:
        active, self.active = self.active, [*self.active, frame.function]
        try:
            self.run_body(frame, state)
        finally:
            self.active = active

    def frame(self, function: Function) -> Frame:
        """Return a new frame of a function."""
        own: Ref = Object.of(Kind.FRAME, function, ())
        if function.parent is None:
            own = Globals.of(function.unit.name)
        return Frame(function, self, own, temps=fresh_temps(function), entry=function.parent is None)

    def start(self, function: Function) -> State:
        """Return the state that a function begins in."""
        mode = guards.mode_of(function) or (Mode.ON if function.parent is None else Mode.CALLER)
        state = State({}, Heap(), mode, frozenset())
        if function.parent is None:
            for other in self._imported(function.unit):
                for holder, edges in other.heap.table.items():
                    state.heap.share(holder, dict(edges))
        else:
            outer = Input.of(function, Special.OUTER)
            own = Object.of(Kind.FRAME, function, ())
            state.heap.put(own, Special.OUTER, symbol(outer))
        return state

    def _imported(self, unit: Unit) -> list[State]:
        """Return what the modules of the project that a file imports leave behind."""
        found = []
        seen: set[Unit] = {unit}
        for where in [*unit.imports.values(), *unit.stars]:
            qualified = self.index.absolute(unit, where)
            for name in (qualified, qualified.rpartition(".")[0]):
                other = self.index.module(name) if name else None
                if other is not None and other not in seen:
                    seen.add(other)
                    end = self.end_of(other)
                    if end is not None:
                        found.append(end)
        return found
