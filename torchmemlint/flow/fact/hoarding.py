"""Hoarding: networks of earlier iterations that a container still holds, though nothing runs them any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import reachable
from torchmemlint.flow.domain.refs import Object, Point, Ref
from torchmemlint.flow.fact.circling import repeating
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.owners import Hoarding
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir.blocks import is_inside
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Op


def hoarding(places: Places, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
    """Yield the networks that are made, and run, in a loop, and held by what nothing but the loop has to do with."""
    for run, evidence in done:
        told: set[Op] = set()
        hoards = list(run.met(fx.Hoard))
        uses = [(met, set(map(_point, refs))) for met, refs in _uses(run)] if hoards else []
        older = [r for _, refs in run.passes() for r in refs if type(r) is Object and r.older] if hoards else []
        again = set(map(_point, reachable(run.state, older)))
        for event, hoard in hoards:
            loop = repeating(evidence.index, event, hoard.point)
            networks = {p for p in hoard.networks if loop is not None and is_inside((p.site, *p.context), loop)}
            if loop is None or loop in told or not networks:
                continue
            used = [met for met, points in uses if not networks.isdisjoint(points)]
            if not (used or any(map(_is_copied, networks))) or not networks.isdisjoint(again):
                continue
            if all(_is_within(met, loop) for met in used):
                told.add(loop)
                yield _case(places, evidence, hoard, loop)


def _case(places: Places, evidence: Evidence, hoard: fx.Hoard, loop: Op) -> Case:
    """Return a case where the loop makes the networks, by itself or by a call."""
    chain = hoard.point.chain()
    number = next((n for n, op in enumerate(chain) if op.owner is loop.owner), 0)
    place, *calls = map(places.of, chain[number:])
    made = tuple(dict.fromkeys(at for p in hoard.networks if (at := places.first(p)) is not None))[:1]
    is_seen = loop.owner.parent is None  # by other files, and by who sits in front of it
    about, doubts = Hoarding(hoard.variable), evidence.cut | {Doubt.LATER} | ({Doubt.WANTED} if is_seen else set())
    return Case(place, "TML807", doubts, loop=places.of(loop), graphs=made, calls=tuple(calls), about=about)


def _is_copied(made: Point) -> bool:
    """Is it a copy of a network? It has its weights, and need not be run to be worth something."""
    return isinstance(made.site, Op) and definitions(made.site.owner).called(made.site) == "copy.deepcopy"


def _point(reference: Ref) -> Point | None:
    return Point(reference.site, reference.context) if type(reference) is Object else None


def _is_within(event: Event, loop: Op) -> bool:
    return is_inside(event.effect.point.chain(), loop) or any(one.site is loop for one in event.loops)


def _uses(run: Run) -> Iterator[tuple[Event, Iterable[Ref]]]:
    """Yield where networks are run, stepped, or handed to what was not seen, which the caller of an entry is, too."""
    yield from ((met, reachable(run.state, refs)) for met, refs in run.passes())
    yield from ((met, reachable(run.state, step.holder.refs)) for met, step in run.met(fx.Step))
    yield from ((met, reachable(run.state, [use.reference])) for met, use in run.met(fx.Use))
    for met, call in run.calls():
        values = [*call.arguments.all(), call.receiver if isinstance(call, fx.InvokeMethod) else call.callee]
        yield met, reachable(run.state, [r for value in values for r in value.refs])
    for met, serve in run.met(fx.Serve):
        yield met, reachable(run.state, [r for value in serve.arguments.all() for r in value.refs])
