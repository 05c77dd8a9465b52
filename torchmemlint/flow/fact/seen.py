"""Seen: the passes of some runs as they are, for rules that ask what a program does.

A forward pass is seen where a network is called: what its own forward runs is a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.domain.heap import Mode, contained
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Bound, Code, Input, Object, Ref
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.closing import inferring
from torchmemlint.flow.fact.evidence import CERTAIN
from torchmemlint.flow.fact.logs import Run, callee
from torchmemlint.flow.fact.outcomes import Backward, Forward, seen_once
from torchmemlint.flow.fact.passes import Passes
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir.ops import Function, Op
from torchmemlint.flow.models.bareness import is_bare_class


def handed(done: Iterable[Run]) -> set[Function]:
    """Return the functions that code which is not seen is given, and may call."""
    found: set[Function] = set()
    for run in done:
        given = {use.reference for use in run.effects(fx.Use) if use.evidence is fx.Evidence.HANDED}
        given |= contained(run.state, (value for call in run.unseen() for value in call.arguments.all()))
        codes = (r.code if type(r) is Bound else r for r in given)
        found.update(code.function for code in codes if type(code) is Code)
    return found


def ahead(engine: Engine, done: Iterable[Run]) -> Iterator[Function]:
    """Yield what runs may have called where they were not followed, but for what predicts or evaluates."""
    for run in done:
        if not run.cut:
            continue
        met = {op.owner for call in (*run.unseen(), *run.effects(fx.Forward)) for op in call.point.chain()}
        cls, plain = run.method_of, {f.name: f for f in run.entry.unit.functions if f.cls is None}
        for name in run.entry.mentions:
            function = (engine.index.method(cls, name) if cls is not None else None) or plain.get(name)
            if function is None or function in met:
                continue
            if not (roles.predicts(engine, function) or roles.evaluates(engine, function)):
                yield function


def called_elsewhere(done: Iterable[Passes], given: set[Function]) -> Iterator[Op]:
    """Yield what leads to a pass in functions that a run calls, and that code which is not seen is given to call, too.

    That code may differentiate what they return, whatever the run does with it.
    """
    for passes in done if given else ():
        for one in passes.all:
            sites = one.point.chain()
            inner = [n for n, site in enumerate(sites[:-1]) if site.owner.definition in given]
            yield from sites[: inner[-1] + 1] if inner else ()


def computing(done: Iterable[Passes]) -> Iterator[Op]:
    """Yield what leads to where something is computed of what a caller gave, and is differentiated or given back."""
    for passes in done:
        run, evidence = passes.run, passes.evidence
        for effect in run.effects(fx.Compute):
            source = effect.source
            given_back = type(source) is Input and source in run.returned
            if given_back or (evidence.is_pass(source) and passes.is_needed(source)):
                yield from effect.point.chain()


def forwards(places: Places, done: Iterable[Passes]) -> tuple[Forward, ...]:
    """Return the forward passes of some runs."""
    return seen_once(one for passes in done for one in _forwards(places, passes))


def backwards(places: Places, done: Iterable[Run]) -> tuple[Backward, ...]:
    """Return what differentiates in some runs."""
    effects = (effect for run in done for effect in run.effects(fx.Differentiate) if effect.point.chain())
    return seen_once(Backward(places.of(e.point.chain()[0]), e.retains, e.creates) for e in effects)


def _forwards(places: Places, passes: Passes) -> Iterator[Forward]:
    engine, run, evidence = passes.engine, passes.run, passes.evidence
    recording = set[tuple[Op, ...]]()

    def seen(head: tuple[Op, ...], module: frozenset[Ref], evaluating: bool) -> tuple[Place, bool | None, Place | None]:
        switched = passes.switched(module) if evaluating else None
        at = places.of(switched.chain()[0]) if switched is not None and switched.chain() else None
        known = evaluating or not any(r.symbolic and r not in evidence.training for r in module)
        return places.of(head[0]), evaluating if known else None, at

    for one in passes.all:
        head = roles.head(engine, one.point)
        if head and not roles.is_of_forward(engine, head[0].owner):
            recording.add(head)
            place, evaluating, at = seen(head, one.module, one.evaluating)
            gradients = True if evidence.modes.get(one.source) in (Mode.ON, Mode.WANTED) else None
            doubts = (evidence.graph(one.source) or CERTAIN) - {Doubt.MODE}
            yield Forward(place, gradients, evaluating, at, one.differentiated, doubts)
    for event in inferring(run, evidence) if run.life is None else ():
        head, module = roles.head(engine, event.effect.point), module_of(event.effect)
        if not head or head in recording or not module or roles.is_of_forward(engine, head[0].owner):
            continue
        by_use = not any(map(evidence.is_known, module))
        place, evaluating, at = seen(head, module, getattr(event.effect, "evaluating", False))
        yield Forward(place, False, evaluating, at, False, evidence.cut | ({Doubt.NETWORK_BY_USE} if by_use else set()))


def module_of(effect: Effect) -> frozenset[Ref]:
    """Return the networks that a pass without gradients runs; none if they have no parameters."""
    called = callee(effect)
    bare = (type(r) is Object and r.kind is Kind.MODULE and is_bare_class(str(r.about)) for r in called)
    return frozenset() if all(bare) else called
