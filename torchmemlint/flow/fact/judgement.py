"""Judgement: some files are run, and what the runs show is put together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Set
from pathlib import Path
from typing import TypeVar

from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.domain.refs import Point
from torchmemlint.flow.engine.following import note
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import giving, roles
from torchmemlint.flow.fact.accelerated import accelerated
from torchmemlint.flow.fact.activating import out_of_place
from torchmemlint.flow.fact.arrivals import Arrivals
from torchmemlint.flow.fact.arriving import created, doubled
from torchmemlint.flow.fact.callers import calling
from torchmemlint.flow.fact.circling import circling, hoarding
from torchmemlint.flow.fact.closing import Guards, closed
from torchmemlint.flow.fact.contexts import kept_on_contexts
from torchmemlint.flow.fact.discarding import discarded
from torchmemlint.flow.fact.entries import inner, mentions, runs
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.feeding import feeding
from torchmemlint.flow.fact.hooking import Hooks, registered
from torchmemlint.flow.fact.layers import Builders
from torchmemlint.flow.fact.loaders import built
from torchmemlint.flow.fact.loading import Loading
from torchmemlint.flow.fact.outcomes import Case, Outcome
from torchmemlint.flow.fact.outputs import kept_whole
from torchmemlint.flow.fact.overwriting import overwritten
from torchmemlint.flow.fact.parts import shared
from torchmemlint.flow.fact.passes import Passes
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.fact.placing import built_loaders, placed_cases, placing, spared
from torchmemlint.flow.fact.recurring import circles
from torchmemlint.flow.fact.remaining import remaining
from torchmemlint.flow.fact.remembering import remembered
from torchmemlint.flow.fact.retaining import differentiating, retained
from torchmemlint.flow.fact.retention import retentions
from torchmemlint.flow.fact.samples import memoised
from torchmemlint.flow.fact.seen import ahead, backwards, called_elsewhere, computing, forwards, handed
from torchmemlint.flow.fact.sending import sent
from torchmemlint.flow.fact.services import services
from torchmemlint.flow.fact.skipping import skipped
from torchmemlint.flow.fact.storing import Readers, needing
from torchmemlint.flow.fact.tallying import tallied
from torchmemlint.flow.fact.threads import threaded
from torchmemlint.flow.fact.viewing import viewed
from torchmemlint.flow.fact.zeroing import zeroings
from torchmemlint.flow.ir.ops import Unit
from torchmemlint.flow.names.suites import is_of_tests, tests_live_here

T = TypeVar("T")

_LEAST_WORK = 20_800
_BYTES_OF_WORK = 20  # of source, for one more


def outcome(
    engine: Engine,
    files: Collection[Path],
    users: Collection[Outcome],
    named: Callable[[Set[str]], bool],
    quietly: Callable[[str], bool],
    deriving: Callable[[], Iterable[Unit]],
    *,
    comparing: bool,
) -> Outcome:
    """Run some files. `users` are what the files show that import these: what they call is seen there.

    `named` says whether functions of those mention some names, `quietly` whether any other file that turns gradients
    off calls a method of some name. `deriving` gives all files that ask autograd for gradients. `comparing`: is the
    outcome to be compared with that of another text?
    """
    sources = engine.index.sources
    sources.sought.clear()
    units = [unit for path in files if (unit := sources.unit(path)) is not None]
    for unit in units:
        engine.index.add(unit)
    called: dict[Place, Mode] = {}
    left: dict[Place, Mode] = {}
    given: dict[Place, giving.Placed] = {}
    for user in users:
        note(called, user.called.items())
        note(left, user.left.items())
        given = {**user.given, **given}
    places = Places(sources)
    work = _LEAST_WORK + sum(len(sources.text(path)) for path in files) // _BYTES_OF_WORK
    functions = {places.of_span(unit, f.span): f for unit in units for f in unit.functions}
    engine.begin(
        {f: called[place] for place, f in functions.items() if place in called},
        {f: left[place] for place, f in functions.items() if place in left},
        {f: networks for place, f in functions.items() if (networks := giving.found(sources, given.get(place, {})))},
        work,
    )
    done = [(run, Evidence(engine, run)) for run in _watched(engine, runs(engine, units, named, quietly))]
    done = shared(engine, done)
    held = [(run, evidence, kept) for run, evidence in _watched(engine, done) for kept in retentions(run, evidence)]
    passes = [Passes(engine, run, evidence, deriving) for run, evidence in _watched(engine, done)]
    used = {site for one in passes for site in one.differentiated()}
    used.update(called_elsewhere(passes, handed(run for run, _ in done)))
    programs = [unit for unit in units if not _is_test(engine, unit)]
    within = [Passes(engine, run, Evidence(engine, run), deriving) for run in _watched(engine, inner(engine, programs))]
    needing_gradients = {site for run, evidence in done for point in needing(run, evidence) for site in point.chain()}
    needing_gradients.update(computing(passes))
    handing = list(discarded(engine, done))
    training = differentiating(run for run, _ in done)
    again = [(run, evidence, one) for run, evidence in done for one in retained(engine, run, evidence, training)]
    guards, builders = Guards(), Builders(engine.index)
    shut = [one for run, evidence in done for one in closed(run, evidence, guards)]
    readers = Readers(units, {name for user in users for name in user.mentioned})
    seen, hooks = [run for run, _ in done], Hooks(units, done)
    loaders = built(engine, seen)
    fed = list(feeding(engine, builders, seen, loaders))
    placed = list(placing(engine, programs, loaders.values()))
    needed = [Point(op) for op in spared(placed)]
    needed += [one.loader.point for one in fed if one.otherwise]
    needed += [one.point for _, _, one in again if one.needed] + [one.point for _, _, one in handing if one.needed]
    return Outcome(
        tuple(places.kept(engine, held)),
        frozenset(places.wanted(held)),
        tuple(places.wasted(engine, builders, [*passes, *within])),
        (
            *places.retained(again),
            *places.discarded(handing),
            *places.closed(shut),
            *places.fed(one for one in fed if one.code == "TML401" and not one.otherwise),
            *placed_cases(places, (one for one in placed if one.loader is None and not one.single)),
        ),
        frozenset((*(places.of(p.chain()[0]) for p in needed), *(places.of_guard(o.guard) for o in shut if o.leaves))),
        (
            *places.noted(done),
            *places.collecting(engine, done),
            *places.failures(engine, done),
            *accelerated(places, done),
            *circles(places, engine, done),
            *sent(places, done),
            *threaded(places, done),
            *places.deferred(done),
            *places.lingering(engine, done),
            *places.memoised(memoised(engine, units, done)),
            *tallied(engine, places, done),
            *kept_whole(places, done),
            *registered(places, hooks),
            *remaining(places, hooks),
            *circling(places, engine, hooks, done),
            *hoarding(places, done),
            *viewed(places, engine, done),
            *skipped(places, engine, done),
            *remembered(places, engine, programs, done),
            *places.served(services(engine, done)),
            *places.loaded(Loading(engine, done)),
            *created(places, engine, programs),
            *doubled(places, programs),
            *kept_on_contexts(places, engine.index, programs),
            *places.fed(one for one in fed if one.code != "TML401"),
            *placed_cases(places, (one for one in placed if one.loader is not None)),
            *places.activating(one for unit in programs for one in out_of_place(builders, unit)),
            *places.zeroed(zeroings(engine, (run for run, _ in done))),
        ),
        tuple(built_loaders(places, loaders.values())),
        frozenset(map(places.of, used)),
        frozenset(tuple(map(places.of, chain)) for run in passes for chain in run.unsettled()),
        frozenset(tuple(map(places.of, p.point.chain())) for run in passes if run.run.cut for p in run.untold()),
        frozenset(places.of_span(f.unit, f.span) for f in ahead(engine, seen)),
        frozenset(map(places.of, needing_gradients)),
        frozenset(Arrivals(places, passes, readers, held, handing).all()) if comparing else None,
        forwards(places, passes),
        backwards(places, seen),
        {places.of_span(f.unit, f.span): mode for f, mode in engine.called.items()},
        calling(engine, done, programs),
        {places.of_span(f.unit, f.span): mode for f, mode in engine.left.items() if f not in engine.unsure},
        {places.of_span(f.unit, f.span): giving.placed(places, one) for f, one in engine.given.items()},
        frozenset(mentions(units)),
        frozenset(map(sources.path, engine.imported(units))),
        frozenset(sources.sought),
        not engine.is_finished(),
    )


def _watched(engine: Engine, found: Iterable[T]) -> Iterator[T]:
    """Let whoever watches the time end it before each."""
    for one in found:
        engine.pulse()
        yield one


def overwriting(engine: Engine, path: Path) -> Iterator[Case]:
    """Yield what a file overwrites too early: it is read for that, and not run."""
    unit = engine.index.sources.unit(path)
    if unit is not None and not _is_test(engine, unit):
        engine.index.add(unit)
        yield from Places(engine.index.sources).overwriting(overwritten(Builders(engine.index), unit))


def _is_test(engine: Engine, unit: Unit) -> bool:
    """Is a file one of tests, by its name, its folder, what it imports or what it defines?"""
    sources = engine.index.sources
    path = sources.path(unit)
    within = sources.within(path)
    if roles.is_test(engine, unit.module) or tests_live_here(within):
        return True
    return is_of_tests(within, sources.text(path), unit.imports.values())
