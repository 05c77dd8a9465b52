"""Logs: what happened in one run of the analysis, with what outlives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import BOXES, HOLDERS, State, contained, reachable, reached
from torchmemlint.flow.domain.provenance import Provenance
from torchmemlint.flow.domain.refs import Leaf, Loop, Object, Ref, Source, is_outside
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.ir.ops import Class, Function, Op

E = TypeVar("E", bound=Effect)
M = TypeVar("M", bound=Effect, covariant=True)


@dataclass(slots=True, eq=False)
class Met(Generic[M]):
    """An effect with the loops around it, and the tests that it stands under, each with the branch."""

    effect: M
    loops: frozenset[Loop]
    branches: dict[Effect, bool]
    around: tuple[Effect, ...]  # the loops and tests, outer ones first

    def loop(self) -> Op | None:
        """Return the innermost loop around it that is written as one."""
        repeats = (one.loop.site for one in reversed(self.around) if isinstance(one, fx.Repeat))
        return next((site for site in repeats if isinstance(site, Op)), None)


Event: TypeAlias = Met[Effect]


@dataclass(slots=True, eq=False)
class Run:
    """The log of one entry."""

    entry: Function
    events: list[Event]
    provenance: Provenance
    result: Value
    returned: frozenset[Source]  # what it holds
    state: State
    method_of: Class | None = None
    receiver: Ref | None = None
    life: frozenset[Loop] | None = None  # in which a function, or any method of an object, is run again and again
    cut: bool = False
    inner: bool = False  # is it the forward of a network, taken apart?
    over: dict[Loop, Value] = field(default_factory=dict)  # what loops run over
    mentioned: Callable[[], bool] = lambda: False  # does code name the entry that was not seen to call it?
    repeats: list[Met[fx.Repeat]] = field(default_factory=list)  # the loops themselves
    _index: dict[type[Effect], list[Met[Any]]] = field(default_factory=dict)
    _lasting: set[Ref] | None = None
    _given: set[Ref] | None = None
    _asking: set[Source] | None = None

    def given(self) -> set[Ref]:
        """Return the objects that whoever called it is given."""
        if self._given is None:
            found = reachable(self.state, self.result.refs)
            self._given = set() if self.receiver in found else found
        return self._given

    def lasting(self) -> set[Ref]:
        """Return what outlives the entry and may be read by code that is not seen; nothing outlives a program."""
        if self._lasting is None:
            holders = self.state.heap.table if self.entry.parent is not None else ()
            self._lasting = reachable(self.state, [h for h in holders if is_outside(h) or h is self.receiver])
        return self._lasting

    def asking(self) -> set[Source]:
        """Return what is not seen and asks for gradients by itself, and what unseen calls give that are given such."""
        if self._asking is None:
            given = [
                (call.result, reached(self.state, value)) for call in self.unseen() for value in call.arguments.all()
            ]
            results = {result for result, sources in given if any(type(s) is Leaf for s in sources)}
            self._asking = results | self.asked()
        return self._asking

    def asked(self) -> set[Ref]:
        """Return what the program has ask for gradients: tensors, or the parameters of networks."""
        return {freeze.reference for freeze in self.effects(fx.Freeze) if freeze.flag.constant is not False}

    def read_gradients(self) -> set[Ref]:
        """Return what has its `.grad` read."""
        return {use.reference for use in self.effects(fx.Use) if use.evidence is fx.Evidence.GRADIENT}

    def of(self, kind: type[E]) -> list[Met[E]]:
        """Return the events of one kind, in order."""
        if not self._index:
            for event in self.events:
                self._index.setdefault(type(event.effect), []).append(event)
        return self._index.get(kind, [])

    def is_plain(self, value: Value) -> bool:
        """Is it a constant, or a container of such?"""
        boxes = (type(r) is Object and r.kind in BOXES for r in contained(self.state, (value,)))
        return value.known or (bool(value.refs) and all(boxes) and not reached(self.state, value))

    def met(self, kind: type[E]) -> Iterator[tuple[Event, E]]:
        """Yield the events of one kind, in order, each with what happened."""
        return ((event, event.effect) for event in self.of(kind))

    def effects(self, kind: type[E]) -> Iterator[E]:
        """Yield what happened of one kind, in order, without what is around it."""
        return (event.effect for event in self.of(kind))

    def calls(self) -> Iterator[tuple[Event, fx.Invoke | fx.InvokeMethod]]:
        """Yield the calls of what is not known: of functions and networks first, then of methods."""
        yield from self.met(fx.Invoke)
        yield from self.met(fx.InvokeMethod)

    def passes(self) -> Iterator[tuple[Event, frozenset[Ref]]]:
        """Yield where networks are run, with gradients and without."""
        yield from ((event, one.module.refs) for event, one in self.met(fx.Forward))
        yield from ((event, one.module.refs) for event, one in self.met(fx.Infer))

    def unseen(self) -> Iterator[fx.Invoke | fx.InvokeMethod]:
        """Yield the same calls without what is around them."""
        return (call for _, call in self.calls())


def _take_down(
    effects: list[Effect],
    into: Run,
    loops: frozenset[Loop] = frozenset(),
    branches: dict[Effect, bool] | None = None,
    around: tuple[Effect, ...] = (),
) -> None:
    branches = branches or {}
    for effect in effects:
        if isinstance(effect, fx.Repeat):
            into.over[effect.loop] = effect.over
            into.repeats.append(Met(effect, loops, branches, around))
            _take_down(effect.effects, into, loops | {effect.loop}, branches, (*around, effect))
        elif isinstance(effect, fx.Fork):
            _take_down(effect.then, into, loops, {**branches, effect: True}, (*around, effect))
            _take_down(effect.orelse, into, loops, {**branches, effect: False}, (*around, effect))
        else:
            into.events.append(Met(effect, loops, branches, around))


def logged(frame: Frame, state: State, returned: Value) -> Run:
    """Return the log of a run that has ended."""
    sources = reached(state, returned, HOLDERS)
    run = Run(frame.function, [], frame.provenance, returned, sources, state, cut=frame.cut)
    _take_down(frame.all_effects(), run)
    return run


def callee(effect: Effect) -> frozenset[Ref]:
    """Return what an effect runs, or calls."""
    match effect:
        case (
            fx.Forward(module=value)
            | fx.Infer(module=value)
            | fx.Invoke(callee=value)
            | fx.InvokeMethod(receiver=value)
        ):
            return value.refs
    return frozenset()
