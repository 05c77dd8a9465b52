"""Teaching: which networks a run trains, and which of its passes only make gradients that nobody uses."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import contained, reachable, visible
from torchmemlint.flow.domain.kinds import Special
from torchmemlint.flow.domain.refs import Input, Leaf, Object, Parameters, Ref, Source, root
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.families import is_network, origin
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir.ops import Call, CallMethod, Class, Op


class Teaching:
    """What is trained in one run, as far as it makes the networks itself, or a framework says what it trains."""

    def __init__(self, engine: Engine, run: Run, evidence: Evidence) -> None:
        self._engine, self._run, self._evidence = engine, run, evidence
        self._held = self._held_beside()
        taught = [holder for holder, edges in run.state.heap.table.items() if Special.TAUGHT in edges]
        if self._held:
            steps_on = [Input.of(run.entry, parameter.name) for parameter in run.entry.parameters[1:2]]
            self._trained = self._family([*taught, *steps_on])
        else:
            holders = taught
            taught = [holder for holder in taught if self.is_made(holder)] if self._steps() else []
            self._trained = self._family([*holders, *self._handed()]) if taught else set[object]()
        self.idle = self._idle() if taught else set[Source]()

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

    def _steps(self) -> bool:
        """Does an optimizer step, itself, by way of a gradient scaler, or by a framework?"""
        run = self._run
        if run.method_of is not None and roles.makers_of_optimizers(self._engine, run.method_of, run.entry):
            return True
        names = itertools.chain((s.name for s in run.effects(fx.Step)), (c.name for c in run.effects(fx.InvokeMethod)))
        return "step" in names

    def _handed(self) -> Iterator[Ref]:
        """Yield networks that code which is not seen may train."""
        for call in self._run.unseen():
            if isinstance(call, fx.Invoke | fx.InvokeMethod):
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

    def _idle(self) -> set[Source]:
        """Passes that lead to no network which is trained, and to nothing else that wants gradients."""
        idle: dict[Source, bool] = {}
        inputs: dict[Source, set[Source]] = {}
        for graph, module, given in self._passes():
            idle[graph] = idle.get(graph, True) and bool(module) and all(map(self._is_idle, module))
            inputs.setdefault(graph, set()).update(given)
        found: set[Source] = set()
        waiting = {graph for graph, is_idle in idle.items() if is_idle}
        while fresh := {g for g in waiting if not self._wants(inputs[g], found | {g})}:
            found |= fresh
            waiting -= fresh
        return found

    def _passes(self) -> Iterator[tuple[Source, Iterable[Ref], Iterable[Source]]]:
        """Yield what (may) begin graphs: the graph, the module and what goes into it."""
        for forward in self._run.effects(fx.Forward):
            if not _is_of_nothing(forward.point.site):
                yield forward.graph, forward.module.refs, forward.inputs
        for call in self._run.unseen():
            module = call.callee if isinstance(call, fx.Invoke) else call.receiver
            yield call.result, module.refs, self._run.provenance.parents.get(call.result, ())

    def _is_idle(self, module: Ref) -> bool:
        is_beside = origin(module) in self._held if self._held else self.is_made(module)
        return is_beside and self._family([module]).isdisjoint(self._trained)

    def _wants(self, inputs: Iterable[Source], idle: set[Source]) -> bool:
        """Is among what inputs come from something that wants gradients, but for the passes that are idle?"""
        sources = {s for s in self._run.provenance.ancestors(inputs) if root(s) not in idle}
        if any(type(s) is Leaf or self._evidence.is_pass(s) for s in sources):
            return True
        callees = set().union(*(self._evidence.callees.get(root(s), ()) for s in sources)) if self._held else set()
        return any(origin(r) in self._trained for r in self._run.provenance.ancestors(callees) | sources)


def _is_of_nothing(site: object) -> bool:
    """Is a network called without an argument? It computes of weights, and those may be another one's."""
    return isinstance(site, Call | CallMethod) and not site.arguments
