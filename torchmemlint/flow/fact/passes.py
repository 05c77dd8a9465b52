"""Passes: forward passes that record a graph, and whether it is ever differentiated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Point
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.domain.refs import Source
from torchmemlint.flow.fact.doubts import Doubt
from torchmemlint.flow.fact.entries import Run
from torchmemlint.flow.fact.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Pass:
    """A forward pass that records a graph."""

    point: Point
    source: Source
    differentiated: bool
    read: bool
    returned: bool
    evaluating: bool
    doubts: frozenset[Doubt]


def passes(run: Run, evidence: Evidence) -> Iterator[Pass]:
    """Yield the forward passes of one run that record a graph."""
    returned = run.provenance.ancestors(run.returned)
    for event in run.of(fx.Forward):
        effect = event.effect
        assert isinstance(effect, fx.Forward)
        doubts = evidence.graph(effect.graph)
        if doubts is None or not effect.module.refs:
            continue
        evaluating = bool(effect.module.refs & evidence.evaluating)
        yield _pass(effect.point, effect.graph, evidence, returned, evaluating, doubts)
    for event in run.of(fx.Invoke):
        effect = event.effect
        assert isinstance(effect, fx.Invoke)
        if not effect.callee.refs & evidence.networks or effect.mode is Mode.OFF:
            continue
        doubts = evidence.graph(effect.result)
        if doubts is None:
            continue
        evaluating = bool(effect.callee.refs & evidence.evaluating)
        yield _pass(effect.point, effect.result, evidence, returned, evaluating, doubts)


def _pass(
    point: Point, source: Source, evidence: Evidence, returned: set[Source], evaluating: bool, doubts: frozenset[Doubt]
) -> Pass:
    return Pass(
        point,
        source,
        source in evidence.differentiated,
        source in evidence.read,
        source in returned,
        evaluating,
        doubts,
    )
