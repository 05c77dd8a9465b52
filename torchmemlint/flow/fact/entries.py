"""Entries: what nobody in the project calls is run from outside, and its log is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Arguments, Effect, Point
from torchmemlint.flow.domain.frame import Frame, Limits
from torchmemlint.flow.domain.heap import HOLDERS, Mode, State, reached
from torchmemlint.flow.domain.provenance import Provenance
from torchmemlint.flow.domain.refs import (
    Bound,
    ClassRef,
    Code,
    Globals,
    Graph,
    Input,
    Loop,
    Object,
    Ref,
    Source,
    Special,
)
from torchmemlint.flow.domain.values import Value, of, symbol
from torchmemlint.flow.engine.instances import code_of, has_decorator
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.ir.ops import Class, Function, Unit


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
    cut: bool = False
    _index: dict[type[Effect], list[Event]] = field(default_factory=dict)

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
                if chosen and function.cls is None and function.parent is unit.module:
                    yield _enter(engine, function, None, ends[unit])
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


def _enter(engine: Engine, function: Function, receiver: Object | None, end: State) -> Run:
    engine.begin()
    frame = Frame(function, engine, Globals.of(function.unit.name), entry=True)
    state = end.copy()
    state.mode = Mode.ON
    arguments = Arguments([symbol(Input.of(function, p.name)) for p in function.parameters[1 if receiver else 0 :]])
    outer: Ref = Globals.of(function.unit.name)
    if function.parent is not None and function.parent.parent is not None:
        outer = Input.of(function, Special.OUTER)
    code: Ref = Code.of(function, outer)
    callee = of(Bound.of(code, receiver)) if receiver is not None else of(code)
    point = Point(function.body[0], ()) if function.body else Point(None)  # type: ignore[arg-type]
    returned = Value()
    try:
        returned = engine.call(frame, state, callee, _given(function, receiver, arguments), point)
        if function.generator:
            returned = engine.consume(frame, state, returned, Value(), point)
    except Limits:
        frame.cut = True
    return _run(function, frame, state, returned)


def _given(function: Function, receiver: Object | None, arguments: Arguments) -> Arguments:
    """Return symbols for the parameters, as each wants to be given."""
    result = Arguments()
    for parameter in function.parameters[1 if receiver is not None else 0 :]:
        value = symbol(Input.of(function, parameter.name))
        match parameter.passing.value:
            case "positional":
                result.positional.append(value)
            case "only named":
                result.named[parameter.name] = value
            case "*":
                result.star = value
            case _:
                result.stars = value
    return result


def _enter_class(engine: Engine, cls: Class, methods: list[Function], end: State) -> Iterator[Run]:
    """Run methods of a class that nobody makes, on one object that is made with unknown arguments."""
    unit = cls.unit
    frame_ref: Ref = Globals.of(unit.name)
    cls_ref = ClassRef.of(cls, frame_ref)
    init = engine.index.method(cls, "__init__")
    state = end.copy()
    state.mode = Mode.ON
    engine.begin()
    start = Frame(init or methods[0], engine, frame_ref, entry=True)
    body = (init or methods[0]).body
    if not body:
        return
    point = Point(body[0], (cls,))
    try:
        given = _given(init, Object.of, Arguments()) if init is not None else Arguments()  # type: ignore[arg-type]
        made = engine.call(start, state, of(cls_ref), given, point)
    except Limits:
        return
    before = _run(init or methods[0], start, state, Value())
    yield before
    network = engine.index.is_network(cls)
    for method in methods:
        if method.name == "__init__":
            continue
        receiver = next(iter(made.refs))
        static = has_decorator(method, frozenset({"staticmethod"}))
        frame_state = state.copy()
        frame_state.spent = frozenset()
        run = _enter_method(
            engine, method, None if static else receiver, frame_state, network and method.name == "forward"
        )
        run.method_of = cls
        run.events[:0] = before.events
        for source, parents in before.provenance.parents.items():
            run.provenance.derive(source, parents)
        yield run


def _enter_method(engine: Engine, method: Function, receiver: Ref | None, state: State, inside: bool) -> Run:
    engine.begin()
    frame = Frame(method, engine, Globals.of(method.unit.name), entry=True)
    if inside and method.body:
        frame.inside.append(Graph.of(method, ()))
    state.mode = Mode.ON
    code = code_of(method)
    callee = of(Bound.of(code, receiver)) if receiver is not None else of(code)
    point = Point(method.body[0], ())
    returned = Value()
    try:
        returned = engine.call(frame, state, callee, _given(method, receiver, Arguments()), point)  # type: ignore[arg-type]
        if method.generator:
            returned = engine.consume(frame, state, returned, Value(), point)
    except Limits:
        frame.cut = True
    return _run(method, frame, state, returned)
