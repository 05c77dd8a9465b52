"""Retaining: backward passes that keep their graph for another one, and whether one may follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.domain.heap import HOLDERS, reached
from torchmemlint.flow.domain.kinds import Special
from torchmemlint.flow.domain.refs import Graph, Input, Object, Phi, Point, Ref, Result, Source, path, root
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.outdated import Outdated, outdated
from torchmemlint.flow.fact.relevance import HOOKED
from torchmemlint.flow.fact.sequence import Sequence
from torchmemlint.flow.ir.ops import Function, Op
from torchmemlint.immutable import immutable


@immutable()
class Retained:
    """A backward pass that keeps its graph because it is asked to."""

    point: Point
    creates: bool
    needed: bool  # by a backward pass that follows
    doubts: frozenset[Doubt]
    sources: frozenset[Source]
    outdated: Outdated | None = None  # what it is kept for
    last: Op | None = None  # the loop whose last iteration need not keep it


def differentiating(runs: Iterable[Run]) -> set[Function]:
    """Return the functions in which runs have met a backward pass."""
    points = (event.effect.point for run in runs for event in run.of(fx.Differentiate))
    return {chain[0].owner for chain in (point.chain() for point in points) if chain}


def retained(engine: Engine, run: Run, evidence: Evidence, functions: set[Function]) -> Iterator[Retained]:
    """Yield the backward passes of one run that keep their graph. `functions` are all that have backward passes."""
    retaining: _Retaining | None = None  # few runs have any
    for event, effect in run.met(fx.Differentiate):
        if effect.asked and effect.point.chain():
            retaining = retaining or _Retaining(engine, run, evidence, functions)
            found = retaining.of(event, effect)
            if found is not None:
                yield found


class _Retaining:
    """What follows the backward passes of a run."""

    def __init__(self, engine: Engine, run: Run, evidence: Evidence, functions: set[Function]) -> None:
        self._engine = engine
        self._run, self._evidence, self._functions = run, evidence, functions
        self._sequence = Sequence(run)

    def of(self, event: Event, effect: fx.Differentiate) -> Retained | None:
        run, evidence = self._run, self._evidence
        through = run.provenance.ancestors(effect.sources)
        graphs = frozenset(filter(self._is_graph, through))
        following = [
            e for e, other in run.met(fx.Differentiate) if self._shares(event, effect, e, other.sources, other.ends)
        ]
        last = self._loop_over_parts(event, effect) if following == [event] else None
        if following and last is None:
            old = self._outdated(event, effect) if following == [event] else None
            doubts = evidence.best(effect.sources, old.sources) if old is not None else None
            if old is None or doubts is None:
                return Retained(effect.point, effect.creates, True, frozenset(), graphs)
            if run.life is not None:
                return None  # told where the method is run once
            return Retained(effect.point, effect.creates, False, doubts | old.doubts, old.sources, old)
        doubts = evidence.best(effect.sources, graphs)
        if doubts is None or run.life is not None or self._is_shared_by_operation(effect, graphs):
            return None
        doubts |= set(self._doubts(event, effect, through))
        if not doubts and any(self._may_keep_state(event, graph) for graph in graphs):
            doubts = frozenset({Doubt.STATE})
        if Doubt.CALLER in doubts and (effect.creates or self._is_of_network()):
            return None  # what is made to be differentiated, and handed out, is wanted for that
        return Retained(effect.point, effect.creates, False, doubts, graphs, last=last)

    def _loop_over_parts(self, event: Event, effect: fx.Differentiate) -> Op | None:
        """Return the loop that differentiates parts of a graph one after the other, if a loop around it makes another.

        That one is made while variables of the same function still hold the first.
        """
        made_in, owner = self._run.provenance.made_in, effect.point.chain()[0].owner
        sites = [(loop, loop.site) for loop in event.loops if isinstance(loop.site, Op) and loop.site.owner is owner]
        shared = self._sequence.shared(event, effect.sources, event, effect.sources, effect.ends)
        graphs = {root(s) for s in shared if self._is_graph(s)}
        inner = [site for loop, site in sites if graphs and graphs.isdisjoint(made_in(loop))]
        carried = any(type(s) is Phi and s.loop in event.loops and self._has_graph(s) for s in shared)
        if effect.creates or len(inner) != 1 or carried:
            return None
        around = (loop for loop, outer in sites if outer is not inner[0] and outer.contains(inner[0]))
        return inner[0] if any(graphs <= made_in(loop) for loop in around) else None

    def _is_of_network(self) -> bool:
        """Is the entry a method of a network which leaves it to others to train that?"""
        cls = self._run.method_of
        return (
            cls is not None
            and self._engine.index.is_network(cls)
            and all(one.name != "step" for one in self._run.effects(fx.Step))
        )

    def _is_shared_by_operation(self, effect: fx.Differentiate, graphs: frozenset[Source]) -> bool:
        """Is the graph one that the other half of a torch.autograd.Function, or a backward around it, goes through?

        What its `forward` leaves with the context is there for its `backward`; what that computes with functions which
        it takes from there may share a graph with its caller.
        """
        cls = self._run.method_of
        if cls is None or not self._engine.index.is_operation(cls):
            return False
        if self._run.entry.name == "forward":
            return not graphs.isdisjoint(self._lasting)
        return any(type(root(s)) is Input for s in self._run.provenance.ancestors(effect.sources, parts=False))

    def _shares(
        self,
        event: Event,
        effect: fx.Differentiate,
        other: Event,
        sources: Iterable[Source],
        ends: frozenset[Source] = frozenset(),
    ) -> bool:
        """Does something that follows a backward pass go through a part of its graph, no further than to `ends`?

        In another iteration, what comes round to where the pass ends is not gone through.
        """
        shared = self._sequence.shared(event, effect.sources, other, sources, ends)
        return any(map(self._has_graph, shared if self._sequence.is_after(other, event) else shared - ends))

    def _outdated(self, event: Event, effect: fx.Differentiate) -> Outdated | None:
        """Return what only the next iteration needs, and should not: its parameters are others by then."""
        if effect.creates:
            return None
        shared = self._sequence.shared(event, effect.sources, event, effect.sources)
        return outdated(self._engine, self._run, self._evidence, event, shared)

    def _is_graph(self, source: Source) -> bool:
        """Does a graph begin here, with a pass of this run?"""
        if type(source) is Graph:
            return True
        return type(root(source)) is Result and self._evidence.is_pass(source)

    def _has_graph(self, source: Source) -> bool:
        if type(source) is Phi:
            return any(map(self._is_graph, self._run.provenance.ancestors((source,))))
        return self._is_graph(source)

    def _doubts(self, event: Event, effect: fx.Differentiate, through: set[Source]) -> Iterator[Doubt]:
        """Yield the doubts whether code that was not seen differentiates once more."""
        run, graphs = self._run, set(filter(self._is_graph, through))
        near = run.provenance.ancestors(effect.sources, parts=False)
        if self._functions - {effect.point.chain()[0].owner} and any(map(self._is_given, near)):
            yield Doubt.UNSEEN_INPUT
        if not graphs.isdisjoint(run.provenance.ancestors(run.returned)):
            yield Doubt.CALLER
        if not graphs.isdisjoint(self._lasting):
            yield Doubt.READER
        if any(self._may_last(event, source) for source in near - graphs):
            yield Doubt.UNSEEN_CALL
        for call, given in self._following(event):
            if self._shares(event, effect, call, given):
                yield Doubt.GIVEN if not _trains(call.effect) else Doubt.TRAINER
        if effect.creates:
            if effect.named and self._uses_gradients(event):
                yield Doubt.GRADIENTS
            if not all(function.mentions.isdisjoint(HOOKED) for function in run.entry.unit.functions):
                yield Doubt.READER

    def _is_given(self, source: Source) -> bool:
        """Is it an argument of a caller that was not seen, and not known to be a network or an item of data?"""
        begin, networks = root(source), self._evidence.networks
        if type(begin) is not Input or source in networks | self._evidence.called:
            return False
        return begin not in networks and all(part.key is not Special.ELEMENT for part in path(source))

    @cached_property
    def _lasting(self) -> set[Source]:
        """The graphs that are left where code that was not seen may read them."""
        run = self._run
        held = (value for holder in run.lasting() for value in run.state.heap.edges(holder).values())
        return run.provenance.ancestors({source for value in held for source in value.graph})

    def _may_last(self, event: Event, source: Source) -> bool:
        """Did code that was not seen make it before the loop, of a network or a graph: does that have a graph?"""
        if event.loops and source in self._evidence.networks:
            return True  # made of it: when, is not known
        made = root(source)
        if type(made) is not Result or made in self._evidence.made:
            return False
        made_in = self._run.provenance.made_in
        if all(made in made_in(loop) for loop in event.loops):
            return False
        return any(map(self._may_bring_graph, self._run.provenance.ancestors((made,)) - {made}))

    def _may_keep_state(self, event: Event, graph: Source) -> bool:
        """Does a network that was not seen begin it in each iteration, perhaps with a state of the one before?"""
        begin = root(graph)
        if not any(begin in self._run.provenance.made_in(loop) for loop in event.loops):
            return False
        return any(module.symbolic for module in self._evidence.callees.get(begin, ()))

    def _may_bring_graph(self, source: Source) -> bool:
        """Is it a network, or what has a graph?"""
        evidence = self._evidence
        return source in evidence.networks or self._is_graph(source)

    def _following(self, event: Event) -> Iterator[tuple[Event, set[Source]]]:
        """Yield the calls of code that was not seen which may follow, with the sources of what they are given."""
        for other, call in self._run.calls():
            given = {s for value in call.arguments.all() for s in reached(self._run.state, value, HOLDERS)}
            if given and self._sequence.may_follow(other, event):
                yield other, given

    def _uses_gradients(self, event: Event) -> bool:
        """Is a gradient read after a backward pass, or does an optimizer step that is none of torch's?"""
        run = self._run
        reads = [e for e, use in run.met(fx.Use) if use.evidence is fx.Evidence.GRADIENT]
        steps = [e for e, one in run.met(fx.Step) if one.name == "step" and not all(map(_is_of_torch, one.holder.refs))]
        unseen = [e for e, call in run.met(fx.InvokeMethod) if call.name == "step"]
        return any(self._sequence.may_follow(other, event) for other in (*reads, *steps, *unseen))


def _is_of_torch(reference: Ref) -> bool:
    return type(reference) is Object and str(reference.about).startswith("torch.optim.")


def _trains(effect: Effect) -> bool:
    """Does a method say by its name that it trains with what it is given?"""
    return isinstance(effect, fx.InvokeMethod) and ("backward" in effect.name or effect.name == "step")
