"""Teaching: which networks a run trains, and which of its passes only make gradients that nobody uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import contained, reachable
from torchmemlint.flow.domain.refs import Graph, Kind, Leaf, Object, Parameters, Ref, Source, Special
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir.ops import Class, Op

_NETWORKS = frozenset({Kind.INSTANCE, Kind.MODULE})


class Teaching:
    """What is trained in one run, as far as it makes the networks itself."""

    def __init__(self, engine: Engine, run: Run, evidence: Evidence) -> None:
        self._engine, self._run, self._evidence = engine, run, evidence
        held = run.state.heap.table.items()
        taught = [holder for holder, edges in held if Special.TAUGHT in edges and self._is_made(holder)]
        taught = taught if self._steps() else []
        self._trained = self._family([*taught, *self._handed()]) if taught else set[object]()
        self.idle = self._idle() if taught else set[Source]()

    def _steps(self) -> bool:
        """Does an optimizer step, itself or by way of a gradient scaler?"""
        steps = [e.effect for e in (*self._run.of(fx.Step), *self._run.of(fx.InvokeMethod))]
        return any(isinstance(s, fx.Step | fx.InvokeMethod) and s.name == "step" for s in steps)

    def _handed(self) -> Iterator[Ref]:
        """Yield networks that code which is not seen may train."""
        for event in (*self._run.of(fx.Invoke), *self._run.of(fx.InvokeMethod)):
            call = event.effect
            if isinstance(call, fx.Invoke | fx.InvokeMethod):
                for r in contained(self._run.state, call.arguments.all()):
                    yield r.module if type(r) is Parameters else r

    def _is_made(self, reference: Ref) -> bool:
        """Is it a network that the run has made, and that is not one of an object which it was given?"""
        if not self._is_network(reference):
            return False
        assert isinstance(reference, Object)
        lives = {site for site in reference.context if isinstance(site, Class)}  # of objects that are given
        return isinstance(reference.site, Op) and lives <= {self._run.method_of} and reference is not self._run.receiver

    def _is_network(self, reference: Ref) -> bool:
        if type(reference) is not Object or reference.kind not in _NETWORKS:
            return False
        return reference.kind is Kind.MODULE or self._engine.index.may_be_network(reference.about.cls)

    def _family(self, modules: Iterable[Ref]) -> set[object]:
        """Where some networks were made, and all that they consist of."""
        every = reachable(self._run.state, list(modules))
        return {(r.site, r.context) for r in every if type(r) is Object and self._is_network(r)}

    def _idle(self) -> set[Source]:
        """Passes that lead to no network which is trained, and to nothing else that wants gradients."""
        graphs: dict[Source, bool] = {}
        inputs: dict[Source, set[Source]] = {}
        for event in self._run.of(fx.Forward):
            effect = event.effect
            assert isinstance(effect, fx.Forward)
            is_idle = bool(effect.module.refs) and all(map(self._is_idle, effect.module.refs))
            graphs[effect.graph] = graphs.get(effect.graph, True) and is_idle
            inputs.setdefault(effect.graph, set()).update(effect.inputs)
        found: set[Source] = set()
        waiting = {graph for graph, is_idle in graphs.items() if is_idle}
        while fresh := {g for g in waiting if not self._wants(inputs[g], found | {g})}:
            found |= fresh
            waiting -= fresh
        return found

    def _is_idle(self, module: Ref) -> bool:
        return self._is_made(module) and self._family([module]).isdisjoint(self._trained)

    def _wants(self, inputs: Iterable[Source], idle: set[Source]) -> bool:
        """Is among what inputs come from something that wants gradients, but for the passes that are idle?"""
        for source in self._run.provenance.ancestors(inputs):
            if type(source) is Leaf or (type(source) is Graph and source not in idle):
                return True
            if type(source) is not Graph and self._evidence.is_pass(source):
                return True
        return False
