"""Discarding: passes whose backward goes on into other networks, for gradients that are zeroed before they are used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from functools import cached_property

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.domain.heap import HOLDERS, contained, reached
from torchmemlint.flow.domain.manners import Given, Reading, Stored
from torchmemlint.flow.domain.refs import Leaf, Part, Point, Ref, Source, root
from torchmemlint.flow.domain.values import SOLE, Value
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.families import family, held
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.sequence import Moment
from torchmemlint.flow.fact.updates import Updates
from torchmemlint.immutable import immutable


@immutable()
class Discarded:
    """A pass that is given the graph of others, into which every backward pass through it goes on for nothing."""

    point: Point
    needed: bool  # by a backward pass whose gradients are used
    makers: frozenset[Source] = frozenset()  # the passes that begin the graph
    doubts: frozenset[Doubt] = frozenset()
    given: Given | None = None  # the argument that has it, where that can be detached
    backward: Point | None = None
    step: Point | None = None  # of what the pass is trained by
    zeroed: Point | None = None  # the gradients that are not used
    alone: Point | None = None  # the one maker, if nothing else needs its graph
    spares: bool = False  # is the backward's graph retained for nothing else?


@immutable()
class _Pass:
    point: Point
    modules: frozenset[Ref]
    given: Given | None


class _Handing:
    """The passes of one run, and what its backward passes do with them."""

    def __init__(self, engine: Engine, run: Run, evidence: Evidence, updates: Updates) -> None:
        self._engine, self._run, self._evidence, self._updates = engine, run, evidence, updates
        self._sequence = updates.sequence(run)
        self._passes = dict(self._all_passes())

    def discarded(self) -> Iterator[Discarded]:
        """Yield the passes that hand backward on for nothing, and those that do so for use."""
        found: dict[Source, Discarded] = {}
        for event, effect in self._run.met(fx.Differentiate):
            through = self._ancestors(effect.sources) if effect.named else set[Source]()
            for source in sorted(through & self._passes.keys(), key=lambda s: s.serial):
                one = self._of(source, event, effect)
                if one is not None and (one.needed or source not in found):
                    found[source] = one
        cut = {source for source, one in found.items() if not one.needed}
        for source, one in found.items():
            yield one if one.needed else self._apart(source, one, cut)

    def _ancestors(self, sources: Iterable[Source], cut: Iterable[Source] = ()) -> set[Source]:
        return self._run.provenance.ancestors(sources, cut=frozenset(cut))

    def _of(self, source: Source, event: Event, effect: fx.Differentiate) -> Discarded | None:
        """Say what a backward pass that goes through a pass does in those that come before it; None if there are none.

        Where it is not known who trains them, a hook awaits a gradient, or they lead to something else that wants
        gradients, it is needed.
        """
        one, moment = self._passes[source], Moment(self._sequence, event)
        above = self._ancestors(self._run.provenance.parents.get(source, ()))
        makers = frozenset(above & self._passes.keys())
        if not makers:
            return None
        needed = Discarded(one.point, True)
        if any(type(s) is Leaf or (self._evidence.is_pass(s) and root(s) not in self._passes) for s in above):
            return needed
        steps, _ = self._updates.after(self._run, moment, one.modules)
        if not steps or any(self._evidence.is_read(s, Reading.HOOKED) for s in above):
            return needed
        zeros = []
        for maker in makers:
            used, zeroed = self._updates.after(self._run, moment, self._passes[maker].modules)
            if used or not zeroed:
                return needed
            zeros += zeroed
        graphs = frozenset(s for s in above if (s.whole if type(s) is Part else root(s)) in makers)
        doubts = self._evidence.best(self._run.provenance.parents[source], graphs)
        own = self._evidence.graph(source)
        if doubts is None or own is None:
            return None
        modules = frozenset[Ref]().union(*(self._passes[maker].modules for maker in makers))
        doubts |= own | frozenset(self._doubts(event, modules))
        if not makers <= self._ancestors(self._run.provenance.parents[source], self._boxes):
            doubts |= {Doubt.PART}
        step = next((s for s in steps if s.run is self._run), steps[0])
        return Discarded(
            one.point, False, makers, doubts, one.given, effect.point, step.moment.event.effect.point,
            zeros[0].moment.event.effect.point,
        )  # fmt: skip

    def _apart(self, source: Source, one: Discarded, cut: set[Source]) -> Discarded:
        """Say what is left of its graph where those that hand backward on for nothing are given none."""
        run, inner = self._run, list[Source]()
        for differentiate in run.effects(fx.Differentiate):
            inner += differentiate.sources
            if not differentiate.named and source in self._ancestors(differentiate.sources):
                one = replace(one, given=None)  # a gradient with respect to what it is given is wanted
        leads = self._ancestors([*inner, *run.returned, *self._left], cut)
        (maker, *others) = one.makers
        alone = None if others or maker in leads else self._passes[maker].point
        return replace(one, alone=alone, spares=self._spares(one, cut))

    @cached_property
    def _boxes(self) -> set[Source]:
        """The places that hold containers: not all that comes from there has the graphs of all that they hold."""
        return {one.slot for one in self._run.effects(fx.Slotted) if one.stored is Stored.HOLDER}

    @cached_property
    def _left(self) -> set[Source]:
        """What is left where code that was not seen may read it, or is given to it."""
        run = self._run
        found = {s for holder in run.lasting() for value in run.state.heap.edges(holder).values() for s in value.graph}
        for call in run.unseen():
            if call.result not in self._passes:
                found |= {s for value in call.arguments.all() for s in reached(run.state, value, HOLDERS)}
        return found

    def _spares(self, one: Discarded, cut: set[Source]) -> bool:
        """Does a backward pass retain its graph only for what is handed on for nothing?"""
        every = list(self._run.met(fx.Differentiate))
        for event, effect in every:
            if effect.point is one.backward and effect.asked and not effect.creates:
                shared = (self._sequence.shared(event, effect.sources, e, other.sources, cut) for e, other in every)
                return not any(self._evidence.is_pass(s) for some in shared for s in some)
        return False

    def _doubts(self, backward: Event, modules: frozenset[Ref]) -> Iterator[Doubt]:
        """Yield the doubts whether the gradients of some networks are computed, and not used."""
        run, updates = self._run, self._updates
        beside = [step for step in updates.steps if step.networks is None]
        if any(step.run is run or (run.method_of and step.run.method_of is run.method_of) for step in beside):
            yield Doubt.OPTIMIZER
        if run.method_of is not None and roles.takes_turns(self._engine, run.method_of):
            yield Doubt.TURN
        own = family(self._engine, run.state, modules)
        for event in (*run.of(fx.Invoke), *run.of(fx.InvokeMethod), *run.of(fx.Use)):
            chain = event.effect.point.chain()
            if chain and chain[-1].owner is run.entry and event.loops >= backward.loops:
                known = [held(run.state, Value(r.alone)) or () for r in _handed(run, event.effect)]
                if not own.isdisjoint(family(self._engine, run.state, [r for some in known for r in some])):
                    yield Doubt.FREEZER

    def _all_passes(self) -> Iterator[tuple[Source, _Pass]]:
        """Yield the passes of networks, by the sources that they begin."""
        for forward in self._run.effects(fx.Forward):
            if forward.module.refs and forward.point.chain():
                yield forward.graph, _Pass(forward.point, forward.module.refs, forward.given)
        for call in self._run.effects(fx.Invoke):
            if call.callee.refs & self._evidence.networks and call.point.chain():
                yield call.result, _Pass(call.point, call.callee.refs, _given(call))


def _handed(run: Run, effect: Effect) -> Set[Ref]:
    """Return what code that was not seen is given, but for what steps, or changes gradients in place."""
    if isinstance(effect, fx.InvokeMethod) and (effect.name == "step" or effect.name.endswith("_")):
        return set()
    if isinstance(effect, fx.Invoke | fx.InvokeMethod):
        return contained(run.state, effect.arguments.all())
    if isinstance(effect, fx.Use) and effect.evidence is fx.Evidence.HANDED:
        return {effect.reference}
    return set()


def _given(call: fx.Invoke) -> Given | None:
    """Return the one argument of a call that has a graph, if it is given by position."""
    every = call.arguments.all()
    graphs = [n for n, value in enumerate(every) if value.graph]
    if len(graphs) != 1:
        return None
    value = every[graphs[0]]
    sole = value.constant is SOLE and not value.refs and not value.open
    stored = Stored.TENSOR if sole else Stored.GRAPH
    return Given.of(call.point.site, len(call.arguments.positional), graphs[0], stored)


def discarded(engine: Engine, done: list[tuple[Run, Evidence]]) -> Iterator[tuple[Run, Evidence, Discarded]]:
    """Yield the passes of some runs that hand backward on into other networks."""
    training = [run for run, _ in done if run.life is None and run.of(fx.Differentiate)]
    if not training:
        return
    updates = Updates(engine, [run for run, _ in done])
    if len({step.networks for step in updates.steps if step.networks}) < 2:
        return  # one optimizer: what it holds is trained together
    for run, evidence in done:
        if run in training:
            for one in _Handing(engine, run, evidence, updates).discarded():
                yield run, evidence, one
