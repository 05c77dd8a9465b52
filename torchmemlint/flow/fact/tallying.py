"""Tallying: metrics that keep all that they are given, whose value is asked for again and again, and never reset."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Object, Ref, Slot
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Event, Run, callee
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir.blocks import is_inside, operations
from torchmemlint.flow.ir.ops import Call, CallMethod, Op, SetAttribute
from torchmemlint.knowledge import metrics


def tallied(engine: Engine, places: Places, done: list[tuple[Run, Evidence]]) -> Iterator[Case]:
    """Yield the updates of metrics that nothing resets."""
    let_go = {metric.site for run, _ in done for metric in _let_go(run)}
    for run, evidence in done:
        computed = [(event, metric) for event, metric, name in _metrics(run) if name == metrics.COMPUTE]
        for event, metric, name in _metrics(run):
            if name not in (metrics.UPDATE, "") or metric.site in let_go:
                continue
            made = (places.of(metric.site),) if isinstance(metric.site, Op) else ()
            if run.life is not None:
                if _attribute(metric) in _read(run):
                    continue
                asked_at = [places.first(asked.effect.point) for asked, other in computed if other.site is metric.site]
                repeats = roles.repeats_in_lightning(engine, event.effect.point.chain())
                if repeats and (asked_at or not name):  # a call asks for the value of its batch
                    moves = tuple(one for one in asked_at[:1] if one is not None)
                    yield places.at(event.effect.point, "TML805", evidence.cut, graphs=made, moves=moves)
                continue
            for asked, other in computed:
                loop = _again(asked, event, metric) if other is metric else None
                if loop is not None and event.effect.point.chain():
                    at = places.first(asked.effect.point)
                    yield places.at(
                        event.effect.point,
                        "TML805",
                        evidence.cut,
                        loop=places.of(loop),
                        graphs=made,
                        moves=(at,) if at is not None else (),
                    )
                    break


def _metrics(run: Run) -> Iterator[tuple[Event, Object, str]]:
    """Yield the calls of metrics that keep what they are given, each with the method's name."""
    for event, call in run.calls():
        for reference in callee(call):
            if _keeps(reference):
                assert isinstance(reference, Object)
                yield event, reference, call.name if isinstance(call, fx.InvokeMethod) else ""


def _keeps(reference: Ref) -> bool:
    if type(reference) is not Object or reference.kind is not Kind.OPAQUE or not isinstance(reference.about, str):
        return False
    site = reference.site
    told = {a.name for a in site.arguments} if isinstance(site, Call | CallMethod) else {metrics.BINNED}
    return metrics.keeps(reference.about) and metrics.BINNED not in told


def _let_go(run: Run) -> Iterator[Object]:
    """Yield the metrics that are reset, or given to code that may do so."""
    for _, metric, name in _metrics(run):
        if name == metrics.RESET:
            yield metric
    for call in run.unseen():
        for reference in (r for value in call.arguments.all() for r in value.refs):
            if type(reference) is Object and reference.kind is Kind.OPAQUE:
                yield reference


def _read(run: Run) -> set[object]:
    """Return the attributes that are read as a whole, as Lightning's `log` reads a metric that it is given."""
    sources = (source for effect in run.effects(fx.Read) for source in effect.sources)
    return {source.key for source in sources if type(source) is Slot}


def _attribute(metric: Object) -> str | None:
    """Return the attribute that a metric becomes where it is made."""
    site = metric.site
    if not isinstance(site, Call | CallMethod):
        return None
    stores = (op for op in operations(site.owner.body) if isinstance(op, SetAttribute))
    return next((op.name for op in stores if op.src == site.dst), None)


def _again(asked: Event, update: Event, metric: Object) -> Op | None:
    """Return the loop that asks for the value again and again, each time after a loop of updates."""
    if not asked.loops < update.loops:
        return None
    sites = (metric.site, *metric.context)
    for loop in sorted(asked.loops, key=lambda loop: loop.serial):
        if isinstance(loop.site, Op) and not is_inside(sites, loop.site):
            return loop.site
    return None
