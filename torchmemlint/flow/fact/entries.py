"""Entries: what nobody in the project calls is run from outside, and its log is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Arguments, Effect, Point
from torchmemlint.flow.domain.frame import Frame, Limits
from torchmemlint.flow.domain.heap import HOLDERS, Mode, State, reachable, reached
from torchmemlint.flow.domain.memory import differentiate
from torchmemlint.flow.domain.provenance import Provenance
from torchmemlint.flow.domain.refs import (
    Bound,
    ClassRef,
    Code,
    Globals,
    Graph,
    Input,
    Kind,
    Loop,
    Object,
    Ref,
    Source,
    Special,
    is_outside,
)
from torchmemlint.flow.domain.values import Value, join_all, of, symbol
from torchmemlint.flow.engine import instances
from torchmemlint.flow.engine.instances import code_of, has_decorator
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.ir.ops import Class, Function, Parameter, Passing, Unit
from torchmemlint.flow.names.index import is_network_name
from torchmemlint.knowledge.contracts import contracts


@dataclass(slots=True, eq=False)
class Event:
    """An effect with the loops around it."""

    effect: Effect
    loops: frozenset[Loop]


@dataclass(slots=True, eq=False)
class Run:
    """The log of one entry."""

    entry: Function
    events: list[Event]
    provenance: Provenance
    returned: frozenset[Source]
    state: State
    method_of: Class | None = None
    receiver: Ref | None = None
    cut: bool = False
    _index: dict[type[Effect], list[Event]] = field(default_factory=dict)

    def lasting(self) -> set[Ref]:
        """Return what outlives the entry and may be read by code that is not seen; nothing outlives a program."""
        if self.entry.parent is None:
            return set()
        heap = self.state.heap
        return reachable(self.state, [h for h in heap.table if is_outside(h) or h is self.receiver])

    def of(self, kind: type[Effect]) -> list[Event]:
        """Return the events of one kind, in order."""
        if not self._index:
            for event in self.events:
                self._index.setdefault(type(event.effect), []).append(event)
        return self._index.get(kind, [])


def _flattened(effects: list[Effect], loops: frozenset[Loop], into: list[Event]) -> list[Event]:
    for effect in effects:
        if isinstance(effect, fx.Repeat):
            _flattened(effect.effects, loops | {effect.loop}, into)
        elif isinstance(effect, fx.Fork):
            _flattened(effect.then, loops, into)
            _flattened(effect.orelse, loops, into)
        else:
            into.append(Event(effect, loops))
    return into


def runs(engine: Engine) -> Iterator[Run]:
    """Yield the runs of a project: the bodies of its files, then what nothing has called, callers first."""
    ends: dict[Unit, State] = {}
    units = list(engine.index.units.values())
    for unit in units:
        engine.begin()
        frame, state = engine.run(unit.module, {})
        yield _run(unit.module, frame, state, Value())
        state.dead = False
        state.spent = frozenset()
        ends[unit] = state
    mentioned = _mentions(units)
    for wanted in (True, False):  # what nobody mentions calls the others
        for unit in units:
            for function in unit.functions[1:]:
                chosen = (function.name not in mentioned) is wanted and function not in engine.called
                if chosen and function.body and function.name != "<lambda>" and function.cls is None and function.parent is unit.module:
                    yield _enter(engine, function, ends[unit])
            for cls in unit.classes:
                methods = [
                    m for m in cls.methods.values() if m not in engine.called and (m.name not in mentioned) is wanted
                ]
                if methods:
                    yield from _enter_class(engine, cls, methods, ends[unit])


def _mentions(units: list[Unit]) -> set[str]:
    """Return the names that some function mentions, other than in its own body."""
    found: set[str] = set()
    for unit in units:
        for function in unit.functions:
            if function.parent is not None and function.parent.parent is None:
                found |= function.mentions - {function.name}
    return found


def _run(entry: Function, frame: Frame, state: State, returned: Value) -> Run:
    point = Point(entry.body[0]) if entry.body else None
    effects = frame.all_effects(point) if point is not None else []
    sources = reached(state, returned, HOLDERS)
    return Run(entry, _flattened(effects, frozenset(), []), frame.provenance, sources, state, cut=frame.cut)


def _enter(engine: Engine, function: Function, end: State) -> Run:
    engine.begin()
    frame = Frame(function, engine, Globals.of(function.unit.name), entry=True)
    state = end.copy()
    outer: Ref = Globals.of(function.unit.name)
    if function.parent is not None and function.parent.parent is not None:
        outer = Input.of(function, Special.OUTER)
    callee = of(Code.of(function, outer))
    if any(d.applied for d in function.decorators):  # what a decorator of the project has made of it
        callee = state.heap.get(Globals.of(function.unit.name), function.name) or callee
    point = Point(function.body[0], ()) if function.body else Point(None)  # type: ignore[arg-type]
    returned = Value()
    try:
        returned = engine.call(frame, state, callee, _given(engine, frame, state, function, 0), point)
        if function.generator:
            returned = engine.consume(frame, state, returned, Value(), point)
    except Limits:
        frame.cut = True
    return _run(function, frame, state, returned)


def _given(engine: Engine, frame: Frame, state: State, function: Function, skip: int) -> Arguments:
    """Return what the parameters of an entry are: symbols, but for those whose annotation says what they are."""
    result = Arguments()
    for parameter in function.parameters[skip:]:
        value = _annotated(engine, state, function, parameter) or symbol(Input.of(function, parameter.name))
        match parameter.passing:
            case Passing.POSITIONAL:
                result.positional.append(value)
            case Passing.ONLY_NAMED:
                result.named[parameter.name] = value
            case Passing.STAR:
                result.star = value
            case Passing.STARS:
                result.stars = value
    return result


def _annotated(engine: Engine, state: State, function: Function, parameter: Parameter) -> Value | None:
    """Return an object for a parameter that is annotated as a network."""
    if not parameter.annotation or parameter.passing in (Passing.STAR, Passing.STARS):
        return None
    cls = engine.index.find_class(function.unit, parameter.annotation)
    if cls is not None:
        if not engine.index.is_network(cls):
            return None
        return engine.unseen_instance(state, cls, function)
    if is_network_name(parameter.annotation):
        return of(Object.of(Kind.MODULE, function, (), f"{parameter.annotation}:{parameter.name}"))
    return None


def _enter_class(engine: Engine, cls: Class, methods: list[Function], end: State) -> Iterator[Run]:
    """Run methods of a class that nobody makes, on one object that is made with unknown arguments."""
    unit = cls.unit
    frame_ref: Ref = Globals.of(unit.name)
    cls_ref = ClassRef.of(cls, frame_ref)
    init = engine.index.method(cls, "__init__")
    state = end.copy()
    engine.begin()
    start = Frame(init or methods[0], engine, frame_ref, entry=True)
    body = (init or methods[0]).body
    if not body:
        return
    point = Point(body[0], (cls,))
    try:
        given = _given(engine, start, state, init, 1) if init is not None else Arguments()
        made = engine.call(start, state, of(cls_ref), given, point)
    except Limits:
        return
    before = _run(init or methods[0], start, state, Value())
    yield before
    network = engine.index.is_network(cls)
    for method in methods:
        if method.name == "__init__" or not method.body:
            continue
        receiver = next(iter(made.refs))
        static = has_decorator(method, frozenset({"staticmethod"}))
        frame_state = state.copy()
        frame_state.spent = frozenset()
        run = _enter_method(
            engine, method, None if static else receiver, frame_state, network and method.name == "forward"
        )
        run.method_of, run.receiver = cls, receiver
        run.events[:0] = before.events
        for source, parents in before.provenance.parents.items():
            run.provenance.derive(source, parents)
        yield run


def _enter_method(engine: Engine, method: Function, receiver: Ref | None, state: State, inside: bool) -> Run:
    engine.begin()
    frame = Frame(method, engine, Globals.of(method.unit.name), entry=True)
    if inside and method.body:
        frame.inside.append(Graph.of(method, ()))
    if _is_called(engine, method, "called-without-gradients"):
        state.mode = Mode.OFF
    code = code_of(method)
    callee = of(Bound.of(code, receiver)) if receiver is not None else of(code)
    point = Point(method.body[0], ())
    if receiver is not None and any(d.applied for d in method.decorators):
        callee = instances.attribute(frame, state, receiver, method.name, point)
    returned = Value()
    try:
        returned = engine.call(
            frame, state, callee, _given(engine, frame, state, method, 0 if receiver is None else 1), point
        )
        if method.generator:
            returned = engine.consume(frame, state, returned, Value(), point)
        _by_contract(engine, frame, state, method, returned, point)
    except Limits:
        frame.cut = True
    return _run(method, frame, state, returned)


def _by_contract(engine: Engine, frame: Frame, state: State, method: Function, returned: Value, point: Point) -> None:
    """Differentiate what a framework differentiates: the loss that `training_step` returns."""
    if method.cls is None or not _is_called(engine, method, "called-with-gradients"):
        return
    loss = returned
    boxes = [r for r in returned.refs if type(r) is Object]
    if boxes:
        first = [state.heap.get(r, key) for r in boxes for key in ("loss", 0)]
        loss = join_all(value for value in first if value is not None)
    differentiate(frame, state, reached(state, loss), point, False)


def _is_called(engine: Engine, method: Function, term: str) -> bool:
    """Does a framework call this method in a way that a contract speaks of?"""
    if method.cls is None:
        return False
    return contracts().overrides(term, method.name, engine.index.libraries(method.cls))
