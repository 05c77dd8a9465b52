"""Remembering: networks, and what holds some, that the cache of a function keeps because it was given them.

`functools.lru_cache` holds its arguments, for they are the key of the result: a method's cache, which is one for all
objects of the class, holds each object that the method was called on. Source: the FAQ of Python, "How do I cache method
calls?".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import reachable
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Object, Parameters, Ref
from torchmemlint.flow.engine.caches import cache_of
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.evidence import CERTAIN, Evidence
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.owners import Caching
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir.blocks import is_inside
from torchmemlint.flow.ir.ops import Function, Op, Parameter, Unit
from torchmemlint.flow.names.index import Index


def remembered(
    places: Places, engine: Engine, units: Iterable[Unit], done: Iterable[tuple[Run, Evidence]]
) -> Iterator[Case]:
    """Yield the caches of functions that keep networks: as runs show them, or else as the functions are written."""
    met: set[Function] = set()
    for run, evidence in done:
        for event, effect in run.met(fx.Remember):
            for name, value in effect.arguments.named.items():
                for reference in value.each():
                    found = _of_networks(run, evidence, reference)
                    if found is None:
                        continue
                    met.add(effect.function)
                    if not _is_made_once(run, event, reference):
                        holds, doubts = found
                        yield _case(places, event, effect, reference, name, holds, doubts | evidence.cut)
    for function in (f for unit in units for f in unit.functions if f.decorators and f not in met):
        decorator = cache_of(function)
        taken = next((p for p in function.parameters if _is_network(engine.index, function, p)), None)
        if decorator is not None and taken is not None:
            about = _caching(function, taken.name, False)
            place = places.of_span(function.unit, decorator.span)
            yield Case(place, "TML804", CERTAIN, advice=True, repeated=False, about=about)


def _case(
    places: Places,
    event: Event,
    effect: fx.Remember,
    reference: Ref,
    name: str,
    holds: bool,
    doubts: frozenset[Doubt],
) -> Case:
    decorator, function = cache_of(effect.function), effect.function
    assert decorator is not None
    loop, call = _loop(event, reference), places.first(effect.point)
    made = _maker(reference) if loop is not None else None
    return Case(
        places.of_span(function.unit, decorator.span),
        "TML804",
        doubts,
        loop is None,
        loop=places.of(loop) if loop is not None else None,
        graphs=(places.of(made),) if made is not None else (),
        calls=(call,) if call is not None else (),
        repeated=loop is not None,
        about=_caching(function, name, holds),
    )


def _caching(function: Function, name: str, holds: bool) -> Caching:
    return Caching(function.name, name == function.receiver, name, holds)


def _is_network(index: Index, function: Function, parameter: Parameter) -> bool:
    """Is a parameter the object of a network's method, or annotated as a network?"""
    if function.cls is not None and parameter.name == function.receiver:
        return index.is_network(function.cls) and not function.is_decorated("staticmethod", "classmethod")
    cls = index.find_class(function.unit, parameter.annotation) if parameter.annotation else None
    return index.is_network_name(parameter.annotation) or (cls is not None and index.is_network(cls))


def _of_networks(run: Run, evidence: Evidence, reference: Ref) -> tuple[bool, frozenset[Doubt]] | None:
    """Does it only hold a network, and with which doubts is that one? None where it has to do with none."""
    if type(reference) is Parameters or evidence.is_known(reference):
        return False, CERTAIN
    if reference in evidence.networks:
        return False, frozenset({Doubt.NETWORK_BY_USE})
    if type(reference) is Object and reference.kind is Kind.INSTANCE:
        held = reachable(run.state, [reference]) - {reference}
        if any(type(r) is Object and evidence.is_known(r) for r in held):
            return True, CERTAIN
    return None


def _maker(reference: Ref) -> Op | None:
    site = getattr(reference, "site", None)
    return site if isinstance(site, Op) else None


def _loop(event: Event, reference: Ref) -> Op | None:
    """Return the loop around an event in which something is made anew each time."""
    for loop in sorted(event.loops, key=lambda loop: loop.serial):
        if isinstance(loop.site, Op) and _is_made_in(reference, loop.site):
            return loop.site
    return None


def _is_made_in(reference: Ref, loop: Op) -> bool:
    sites = (getattr(reference, "site", None), *getattr(reference, "context", ()))
    return is_inside(sites, loop)


def _is_made_once(run: Run, event: Event, reference: Ref) -> bool:
    """Is it made once by a program, which then lives as long as it?"""
    return type(reference) is Object and run.entry.parent is None and _loop(event, reference) is None
