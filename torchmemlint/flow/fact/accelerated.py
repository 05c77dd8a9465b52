"""Accelerated: loops that train with batches which they bring to an accelerator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.domain.heap import contained
from torchmemlint.flow.domain.provenance import Numbers
from torchmemlint.flow.domain.refs import Point
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.moving import is_item
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.fact.updates import updates
from torchmemlint.flow.ir.ops import Function


def accelerated(places: Places, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
    """Yield the backward passes of some runs that train on an accelerator."""
    for run, evidence in done:
        for backward, moved in _training(run, evidence):
            moves = tuple(map(places.of, moved.chain()[:1]))
            if moves:
                yield places.at(backward, "TML603", evidence.cut, advice=True, moves=moves)


def _training(run: Run, evidence: Evidence) -> Iterator[tuple[Point, Point]]:
    """Yield the first backward pass of each function that trains, and what brings the batches of its loop there."""
    if run.life is not None or not any(getattr(event.effect, "name", "") == "step" for event, _ in updates(run)):
        return  # seen where each method is run once, or never used
    moves: dict[Effect, Point | None] = {}
    seen: set[Function] = set()
    for event, backward in run.met(fx.Differentiate):
        chain = backward.point.chain()
        if not backward.named or not chain or chain[0].owner in seen:
            continue  # gradients that are handed out are for no step
        for repeat in reversed(event.around):
            if isinstance(repeat, fx.Repeat):
                if repeat not in moves:
                    moves[repeat] = _moved(run, evidence, repeat)
                if (moved := moves[repeat]) is not None:
                    seen.add(chain[0].owner)
                    yield backward.point, moved
                    break


def _moved(run: Run, evidence: Evidence, loop: fx.Repeat) -> Point | None:
    """Return what brings to an accelerator what a loop runs over, at once or item by item, before a pass."""
    over, provenance = contained(run.state, [loop.over]), run.provenance
    passes = {s for s in provenance.parents if evidence.is_pass(s)} if over else set()
    for event, move in run.met(fx.Move) if over else ():
        if move.to_host or any(map(evidence.is_network, move.of.refs)):
            continue
        if not move.of.refs.isdisjoint(over):
            return move.point
        if loop in event.around:
            comes_from = provenance.ancestors(move.of.refs | move.of.graph, cut=passes, numbers=Numbers.ALL)
            if any(is_item(source, whole) for source in comes_from for whole in over):
                return move.point
    return None
