"""Deferring: backward passes that wait for the losses of several iterations, whose graphs all live until then."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import ELEMENT, contained
from torchmemlint.flow.domain.kinds import PIECES
from torchmemlint.flow.domain.manners import How
from torchmemlint.flow.domain.refs import Behind, Graph, Loop, Object, Point, Ref, Result, Source, root
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Event, Met, Run
from torchmemlint.flow.fact.moving import is_item
from torchmemlint.flow.fact.owning import is_of_network
from torchmemlint.flow.fact.retention import is_bent, is_chain
from torchmemlint.flow.ir.blocks import is_inside, layout_of
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Call, CallMethod
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import torch_api

_DRAWING = frozenset({"torch.randn", "torch.rand", "torch.randint", "torch.normal"})


@immutable()
class Deferred:
    """A backward pass through the sum or mean of what several iterations made, each of its own."""

    point: Point
    kept: Point
    how: How
    loop: Loop
    sources: frozenset[Source]
    doubts: frozenset[Doubt]


def deferred(run: Run, evidence: Evidence) -> Iterator[Deferred]:
    """Yield the backward passes of one run that could run in each iteration instead."""
    if run.life is not None:
        return  # seen where each method is run once
    for event, effect in run.met(fx.Keep):
        passes = frozenset(filter(evidence.is_pass, effect.events))
        if effect.how not in (How.SUM, How.COLLECTION) or not passes or not passes.isdisjoint(effect.spent):
            continue
        backward = _only_backward(run, effect, passes)
        if backward is None or not _waits(backward, event, effect.loop):
            continue
        if is_bent(run, effect) or is_chain(run, effect) or _is_shared(run, evidence, effect):
            continue
        doubts = evidence.best(effect.sources, passes)
        if doubts is not None:
            doubts |= set(_doubts(run, evidence, event, effect, backward.effect))
            yield Deferred(backward.effect.point, effect.point, effect.how, effect.loop, passes, doubts)


def _only_backward(run: Run, effect: fx.Keep, passes: frozenset[Source]) -> Met[fx.Differentiate] | None:
    """Return the one backward pass through what is kept, if it frees the graph and gives no values to go on with."""
    found: list[Met[fx.Differentiate]] = []
    for event in run.of(fx.Differentiate):
        backward = event.effect
        through = run.provenance.ancestors(backward.sources)
        if not passes.isdisjoint(through):
            found.append(event)
            if effect.phi not in through or backward.retains or backward.creates or not backward.named:
                return None
    return found[0] if len(found) == 1 else None


def _waits(backward: Event, kept: Event, loop: Loop) -> bool:
    """Does it run after a loop, or only in some of the iterations in which something is kept?"""
    return loop not in backward.loops or not backward.branches.items() <= kept.branches.items()


def _is_shared(run: Run, evidence: Evidence, effect: fx.Keep) -> bool:
    """Have the graphs of the iterations a part in common that was made before?"""
    inside = run.provenance.made_in(effect.loop)
    above = run.provenance.ancestors(effect.events, frozenset({effect.loop}))
    return any(evidence.is_pass(s) and root(s) not in inside for s in above)


def _doubts(run: Run, evidence: Evidence, kept: Event, effect: fx.Keep, backward: fx.Differentiate) -> Iterator[Doubt]:
    """Yield the doubts whether it could run in each iteration, and whether that is worth it."""
    calls = {s for s in run.provenance.parents if type(s) is Result and s not in effect.events}
    if effect.phi not in run.provenance.ancestors(backward.sources, cut=calls):
        yield Doubt.UNSEEN_CALL
    if is_of_network(evidence.index, effect.loop):
        yield Doubt.LAYERS
    over = partial(_over, run)
    items = {s.base for s in run.provenance.ancestors(effect.events) if type(s) is Behind and s.key is ELEMENT}
    items -= set[Ref]().union(*map(over, kept.loops))  # one for all iterations
    given = over(effect.loop) | items
    if not any(_is_of_batches(run, evidence, r) for r in given) and not any(map(_is_drawn, effect.events)):
        yield Doubt.BATCHES


def _is_drawn(source: Source) -> bool:
    """Is it a pass of nothing but random numbers that are drawn for it, as programs do that stand for others?"""
    site = source.site if type(source) is Graph else None
    if not isinstance(site, Call | CallMethod):
        return False
    flow, loop = definitions(site.owner), next(layout_of(site.owner).loops(site), None)
    makers = [op for a in site.arguments for op in flow.origins(a.temp) if isinstance(op, Call | CallMethod)]
    drawn = [op for op in makers if flow.called(op) in _DRAWING and loop is not None and is_inside([op], loop)]
    return bool(drawn) and all(
        op in drawn or (isinstance(op, CallMethod) and op.name in torch_api.MOVES) for op in makers
    )


def _over(run: Run, loop: Loop) -> set[Ref]:
    """Return what a loop runs over."""
    return contained(run.state, [run.over[loop]]) if loop in run.over else set()


def _is_of_batches(run: Run, evidence: Evidence, reference: Ref) -> bool:
    """Does something give batches: a loader, the pieces of a batch, or what is moved to a device item by item?"""
    if type(reference) is Object:
        about = reference.about if isinstance(reference.about, str) else ""
        return about == PIECES or about in evidence.index.contracts.names("loaders")
    if type(reference) is Result:
        return any(_cuts(call, reference) for call in run.effects(fx.InvokeMethod))
    uses = run.effects(fx.Use)
    return any(use.evidence is fx.Evidence.MOVED and is_item(use.reference, reference) for use in uses)


def _cuts(call: fx.InvokeMethod, result: Result) -> bool:
    if call.result is not result or call.name not in torch_api.SPLITTERS:
        return False
    return len(call.arguments.all()) == 1 and not isinstance(call.arguments.all()[0].constant, str)
