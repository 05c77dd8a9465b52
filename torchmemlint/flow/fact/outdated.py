"""Outdated graphs: those that are differentiated again although an optimizer has changed their parameters since."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain.refs import Graph, Loop, Point, Result, Source, root
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.families import family, wholes
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.updates import holding, is_step, reached
from torchmemlint.flow.ir.ops import Op
from torchmemlint.immutable import immutable


@immutable()
class Outdated:
    """Graphs from before a loop that each of its iterations differentiates, and whose parameters it also changes."""

    loop: Loop
    step: Point
    sources: frozenset[Source]
    doubts: frozenset[Doubt]

    @property
    def begun(self) -> list[Point]:
        """Where the graphs begin, in order of place."""
        wholes = {root(s) for s in self.sources}
        found = {Point(w.site, w.context) for w in wholes if isinstance(w, Graph | Result) and isinstance(w.site, Op)}
        return sorted(found, key=lambda point: [(op.owner.unit.name, op.span) for op in point.chain()])


def outdated(
    engine: Engine, run: Run, evidence: Evidence, backward: Event, shared: Iterable[Source]
) -> Outdated | None:
    """Return what is outdated of the graphs that a backward pass shares with the one of the next iteration."""
    graphs = sorted((s for s in shared if evidence.is_pass(s)), key=lambda s: s.serial)
    steps = [(e, networks) for e, networks in holding(engine, run) if is_step(e)] if graphs else []
    unsure: Outdated | None = None
    for loop in sorted(backward.loops.difference(run.life or ()), key=lambda loop: loop.serial):
        before = [s for s in graphs if root(s) not in run.provenance.made_in(loop)]
        for event, networks in (step for step in steps if loop in step[0].loops):
            if networks is None:
                unsure = unsure or Outdated(loop, event.effect.point, frozenset(before), frozenset({Doubt.OPTIMIZER}))
            elif changed := frozenset(s for s in before if _is_of(engine, run, evidence, s, networks)):
                return Outdated(loop, event.effect.point, changed, frozenset())
    return unsure if unsure is not None and unsure.sources else None


def _is_of(engine: Engine, run: Run, evidence: Evidence, source: Source, networks: frozenset[object]) -> bool:
    """Did one of some networks begin a graph?"""
    modules = evidence.callees.get(root(source), set())
    return any(reached(networks, frozenset(family(engine, run.state, [m])), frozenset(wholes(m))) for m in modules)
