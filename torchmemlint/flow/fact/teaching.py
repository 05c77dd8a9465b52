"""Teaching: which networks a run trains, and which of its passes only make gradients that nobody uses.

A network that the run makes is trained if an optimizer holds it, or a part of it, or if code that is not seen is given
it. One that somebody gives may be trained there, or frozen: that is a doubt. So is an optimizer that somebody gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import contained, reachable, visible
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Input, Leaf, Object, Parameters, Ref, Source, path, root
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.evidence import CERTAIN, Evidence
from torchmemlint.flow.fact.families import is_network, missing, origin
from torchmemlint.flow.fact.logs import Run, callee
from torchmemlint.flow.ir.ops import Call, CallMethod, Class, Op

Doubts = frozenset[Doubt]


class Teaching:
    """What is trained in one run, as far as that is seen, or a framework says what it trains.

    `idle` holds the passes whose gradients nobody uses, with the doubts about that.
    """

    def __init__(self, engine: Engine, run: Run, evidence: Evidence) -> None:
        self._engine, self._run, self._evidence = engine, run, evidence
        self._held = self._held_beside()
        taught = {holder for holder, edges in run.state.heap.table.items() if Special.TAUGHT in edges}
        self._asking = set[Source]()
        self._of_optimizers = self._of_others = CERTAIN  # the doubts about what they hold, of what is made and given
        self.idle: dict[Source, Doubts] = {}
        if self._held:
            steps_on = [Input.of(run.entry, parameter.name) for parameter in run.entry.parameters[1:2]]
            self._trained = self._family([*taught, *steps_on])
        else:
            seen, unseen = self._optimizers()
            if not (seen or unseen):
                return
            self._asking = taught | run.asking()
            given = [*taught, *self._handed()]
            self._of_optimizers = CERTAIN if taught and seen else frozenset({Doubt.OPTIMIZER})
            self._missing = missing(run.state, given)
            self._of_others = frozenset({Doubt.OPTIMIZER}) if unseen else CERTAIN
            self._trained, self._reached = self._family(given), reachable(run.state, given)
        self.idle = self._idle()

    def _held_beside(self) -> set[object]:
        """Return the origins of what an object holds beside what its constructor is given and a framework trains."""
        run = self._run
        if run.method_of is None or run.receiver is None or not roles.is_step(self._engine, run.entry):
            return set()
        if not roles.leaves_training(self._engine, run.method_of):
            return set()
        held = [value.refs for _, value in visible(run.state.heap.edges(run.receiver))]
        flags = [(refs, [run.state.heap.get(r, Special.FROZEN) for r in refs]) for refs in held]
        frozen = (refs for refs, found in flags if any(flag is not None and flag.constant is True for flag in found))
        beside = {origin(r) for r in reachable(run.state, set().union(*held)) - set().union(*frozen)}
        return beside - {run.receiver}  # what a base class holds that is not seen, such as the model itself

    def _optimizers(self) -> tuple[bool, bool]:
        """Return whether an optimizer that steps was seen to be made, and whether one was not."""
        run = self._run
        if run.method_of is not None and roles.makers_of_optimizers(self._engine, run.method_of, run.entry):
            return True, False
        stepped: list[Set[Ref]] = [step.holder.refs for step in run.effects(fx.Step) if step.name == "step"]
        for call in run.effects(fx.InvokeMethod):
            if call.name == "step":
                held = contained(run.state, call.arguments.all())
                if any(map(self._is_optimizer, held)):  # of a gradient scaler
                    stepped.append(held)
                elif not call.arguments.all() or (held and all(r.symbolic for r in held)):  # else of an environment
                    stepped.append(call.receiver.refs)
        seen = [any(map(self._is_optimizer, refs)) for refs in stepped]
        return any(seen), not all(seen)

    def _is_optimizer(self, r: Ref) -> bool:
        """Is it one that was made, or a network, which steps what it was given to train it?"""
        return type(r) is Object and (r.kind is Kind.OPTIMIZER or self._evidence.is_known(r))

    def _handed(self) -> Iterator[Ref]:
        """Yield networks that code which is not seen may train."""
        for call in self._run.unseen():
            for r in contained(self._run.state, call.arguments.all()):
                yield r.module if type(r) is Parameters else r

    def is_made(self, reference: Ref) -> bool:
        """Is it a network that the run has made, and that is not one of an object which it was given?"""
        if not is_network(self._engine, reference):
            return False
        assert isinstance(reference, Object)
        lives = {site for site in reference.context if isinstance(site, Class)}  # of objects that are given
        return isinstance(reference.site, Op) and lives <= {self._run.method_of} and reference is not self._run.receiver

    def _family(self, modules: Iterable[Ref]) -> set[object]:
        """The origins of some networks, and of all that they consist of."""
        every = reachable(self._run.state, list(modules))
        return {origin(r) for r in every if is_network(self._engine, r) or (self._held and r.symbolic)}

    def _idle(self) -> dict[Source, Doubts]:
        """Passes that lead to no network which is trained, and to nothing else that wants gradients."""
        doubts: dict[Source, Doubts | None] = {}
        inputs: dict[Source, set[Source]] = {}
        for graph, module, given, evaluating in self._passes():
            own = (self._doubts(one, evaluating) for one in module)
            found = [doubts.get(graph, CERTAIN), *own] if module else [None]
            doubts[graph] = None if None in found else CERTAIN.union(*(one for one in found if one is not None))
            inputs.setdefault(graph, set()).update(given)
        idle: dict[Source, Doubts] = {}
        waiting = {graph: one for graph, one in doubts.items() if one is not None and graph not in self._asking}
        while fresh := {g: one for g, one in waiting.items() if not self._wants(inputs[g], {*idle, g})}:
            idle |= fresh
            waiting = {graph: one for graph, one in waiting.items() if graph not in fresh}
        return idle if self._held else self._beside_trained(idle)  # a framework trains what the step is for

    def _beside_trained(self, idle: dict[Source, Doubts]) -> dict[Source, Doubts]:
        """Leave out the passes of a backward that leads to nothing else: it was written for their gradients.

        Beside what may be trained anyway, it suffices that something else may have a graph.
        """
        alone = set[Source]()
        for backward in self._run.effects(fx.Differentiate):
            if not self._wants(backward.sources, set(idle)):
                through = self._run.provenance.ancestors(backward.sources)
                others = any(root(s) in self._evidence.callees and root(s) not in idle for s in through)
                alone |= {s for s in through if not (others and idle.get(s))}
        return {graph: one for graph, one in idle.items() if graph not in alone}

    def _passes(self) -> Iterator[tuple[Source, Iterable[Ref], Iterable[Source], bool]]:
        """Yield what (may) begin graphs: the graph, the module, what goes into it, and whether it is in eval mode."""
        for forward in self._run.effects(fx.Forward):
            if not _is_of_nothing(forward.point.site):
                yield forward.graph, forward.module.refs, forward.inputs, forward.evaluating
        for call in self._run.unseen():
            yield call.result, callee(call), self._run.provenance.parents.get(call.result, ()), call.evaluating

    def _doubts(self, module: Ref, evaluating: bool) -> Doubts | None:
        """Return the doubts whether nothing trains a network; None where something does, or may well do.

        What somebody gives is taken for such a one if it is in evaluation mode, and another network is not.
        """
        if self._held:
            return CERTAIN if origin(module) in self._held and self._is_apart(module) else None
        if self.is_made(module):
            is_missing = type(module) is Object and isinstance(module.site, Op) and module.site.owner in self._missing
            doubts = self._of_optimizers | ({Doubt.OPTIMIZER} if is_missing else CERTAIN)
            return doubts if self._is_apart(module) else None
        if not evaluating or self._is_related(module):
            return None
        return self._of_optimizers | self._of_others | {Doubt.ORIGIN}

    def _is_apart(self, module: Ref) -> bool:
        return self._family([module]).isdisjoint(self._trained)

    def _is_related(self, module: Ref) -> bool:
        """Is a network that somebody gives among what is trained, or a part of that, or is a part of it?"""
        wholes = {module, *(part.base for part in path(module))}
        return any(r in wholes or any(part.base is module for part in path(r)) for r in self._reached)

    def _wants(self, inputs: Iterable[Source], idle: set[Source]) -> bool:
        """Is among what inputs come from something that wants gradients, but for the passes that are idle?"""
        sources = {s for s in self._run.provenance.ancestors(inputs) if root(s) not in idle}
        if any(type(s) is Leaf or s in self._asking or self._evidence.is_pass(s) for s in sources):
            return True
        callees = set().union(*(self._evidence.callees.get(root(s), ()) for s in sources)) if self._held else set()
        return any(origin(r) in self._trained for r in self._run.provenance.ancestors(callees) | sources)


def _is_of_nothing(site: object) -> bool:
    """Is a network called without an argument? It computes of weights, and those may be another one's."""
    return isinstance(site, Call | CallMethod) and not site.arguments
