"""Outcomes: what the runs of some files show, said of places in files and not of the engine's objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from pathlib import Path

from torchmemlint.doubts import Confidence, Doubt, confidence
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Given, How, Point, Remark, Stored
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.domain.refs import CONTEXT_LIMIT, Behind, Graph, Kind, Object, Result, Source, root
from torchmemlint.flow.engine.following import leave
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.closing import Closed, Guard, Guards, closed
from torchmemlint.flow.fact.collecting import collected
from torchmemlint.flow.fact.data import Access, bypasses
from torchmemlint.flow.fact.deferring import deferred
from torchmemlint.flow.fact.discarding import Discarded, discarded
from torchmemlint.flow.fact.entries import mentions, runs
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.failures import Failures
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.notes import notes
from torchmemlint.flow.fact.passes import Pass, Passes, Reason
from torchmemlint.flow.fact.retaining import Retained, differentiating, retained
from torchmemlint.flow.fact.retention import Fate, Retention, retentions
from torchmemlint.flow.fact.services import Service, services
from torchmemlint.flow.fact.storing import Readers, needing, stores
from torchmemlint.flow.fact.trainers import collecting
from torchmemlint.flow.ir.ops import Function, Op, Span, Unit
from torchmemlint.flow.names.sources import Sources

_LEAST_WORK = 9_000
_BYTES_OF_WORK = 40  # of source, for one more


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A stretch of a file; lines from 1, columns in bytes of UTF-8 from 0, as in `ast`."""

    path: Path
    span: Span

    def contains(self, other: Place) -> bool:
        """Does it contain another place?"""
        (first, start, last, end), (row, column, end_row, end_column) = self.span, other.span
        return self.path == other.path and (first, start) <= (row, column) and (end_row, end_column) <= (last, end)


@dataclass(frozen=True, slots=True)
class Left:
    """What code with a graph leaves where other code may find it: without gradients, it would have none."""

    places: tuple[Place, ...]  # where it is stored, with the calls that led there, innermost first
    made: tuple[Place, ...]  # and where the holder was made

    def outside(self, is_in: Callable[[Place], bool]) -> Place | None:
        """Return where a stretch of code leaves it that did not make the holder; None if it does not."""
        if any(map(is_in, self.made)):
            return None
        return next(filter(is_in, self.places), None)


@dataclass(frozen=True, slots=True)
class Discarding:
    """How it comes that a pass hands backward on for nothing."""

    step: Place  # for which backward runs
    zeroed: Place  # the gradients that it leaves in the other networks
    argument: Given | None  # that can be detached
    alone: Place | None  # the pass before, if nothing else needs its graph
    spares: bool  # is the graph of the backward pass retained for nothing else?


@dataclass(frozen=True, slots=True)
class Case:
    """A fact that a rule reports."""

    place: Place
    code: str
    doubts: frozenset[Doubt]
    advice: bool = False  # one graph, not a growing number of them
    how: How | None = None  # a graph is kept that way
    reason: Reason | None = None  # or one is recorded for nothing
    loop: Place | None = None  # in which it grows
    graphs: tuple[Place, ...] = ()  # where the graphs begin that are kept
    within: Place | None = None  # where it happens, by what this place calls
    calls: tuple[Place, ...] = ()  # that led there, innermost first
    runs: tuple[Place, ...] = ()  # the forwards of networks that a wasted pass runs
    switched: Place | None = None  # where eval() was called on its network
    kept: Place | None = None  # by what its graph lives on from iteration to iteration
    function: Place | None = None  # around a wasted pass
    beside: tuple[Place, ...] = ()  # what may need gradients there: passes that nothing shows to be waste, and others
    left: tuple[Left, ...] = ()  # in the same file, beside its results
    spent: bool = False  # has backward run through the graphs?
    backward: Place | None = None  # where that is
    stored: Stored = Stored.HOLDER
    unmade: bool = False  # by a method of a class that nobody makes, and that trains nothing there?
    repeated: bool = True  # or does it happen once and end with the program?
    making: bool = False  # when an object is made: once for each
    creates: bool = False  # does the backward pass which keeps its graph for nobody make one of the gradients, too?
    service: Service | None = None  # or something manages memory, or watches the program
    shown: Place | None = None  # what shows that it does so for every batch
    remark: Remark | None = None  # or something is remarkable by itself
    moves: tuple[Place, ...] = ()  # or what is kept was brought to a device, and is brought to the host later: where
    access: Access | None = None  # or values are read or changed past autograd
    discarding: Discarding | None = None  # or a backward pass goes on into other networks for nothing

    @property
    def file(self) -> str:
        """The file that it is reported in."""
        return str(self.place.path)

    @property
    def line(self) -> int:
        """The line that it is reported at."""
        return self.place.span[0]

    @property
    def confidence(self) -> Confidence:
        """How sure it is."""
        return confidence(self.doubts)


@dataclass(frozen=True, slots=True)
class Waste:
    """A pass for which nothing needs gradients, with the calls that led to it, innermost first.

    It is reported at the first of them that leads to no other pass that is differentiated.
    """

    calls: tuple[Place, ...]
    own: tuple[bool, ...]  # of each: does it stand outside of the forward of a network?
    functions: tuple[Place | None, ...]  # and in which function?
    case: Case

    def at(self, number: int, used: Iterable[Place], left: Iterable[Left]) -> Case:
        """The case at one of the calls. `used` may need gradients; `left` is what code leaves beside its results."""
        place, function = self.calls[number], self.functions[number]
        beside = {u for u in used if u.path == place.path and (function is None or function.contains(u))}
        further = self.calls[number + 1 :]
        here = tuple(one for one in left if any(p.path == place.path for p in one.places))
        ordered = tuple(sorted(beside))
        return replace(self.case, place=place, calls=further, function=function, beside=ordered, left=here)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the runs of some files show."""

    kept: tuple[Case, ...] = ()
    wanted: frozenset[Place] = (
        frozenset()
    )  # what keeps graphs that (may) be differentiated later, and calls that led there
    wasted: tuple[Waste, ...] = ()
    unneeded: tuple[Case, ...] = ()  # backwards that keep their graph, passes that hand backward on, and `no_grad`
    needed: frozenset[Place] = frozenset()  # those of them that something uses
    noted: tuple[Case, ...] = ()  # what is remarkable by itself, done past autograd, or kept without a graph
    used: frozenset[Place] = frozenset()  # calls that led to passes that are differentiated
    open: frozenset[Place] = frozenset()  # calls that led to passes which nothing shows to be waste
    needing: frozenset[Place] = frozenset()  # what differentiates, or hands a network to code that may
    leaving: frozenset[Left] = frozenset()  # what code leaves beside its results
    called: frozenset[Place] = frozenset()  # functions
    left: Mapping[Place, Mode] = field(default_factory=dict)  # functions, by runs that were cut, and in which mode
    mentioned: frozenset[str] = frozenset()  # by their functions: names
    files: frozenset[Path] = frozenset()  # that were run, or might have been
    sought: frozenset[str] = frozenset()  # where it was looked for files
    whole: bool = True  # or was there more to run than they may take?
    failure: Exception | None = None  # of ours, that ended the runs


NOTHING = Outcome()


def outcome(
    engine: Engine, files: Collection[Path], users: Collection[Outcome], named: Callable[[Set[str]], bool]
) -> Outcome:
    """Run some files. `users` are what the files show that import these: what they call is seen there.

    `named` says whether functions of those mention some names.
    """
    sources = engine.index.sources
    sources.sought.clear()
    units = [unit for path in files if (unit := sources.unit(path)) is not None]
    for unit in units:
        engine.index.add(unit)
    known = {function for user in users for function in user.called}
    left: dict[Place, Mode] = {}
    for user in users:
        leave(left, user.left.items())
    places = _Places(sources)
    work = _LEAST_WORK + sum(len(sources.text(path)) for path in files) // _BYTES_OF_WORK
    functions = {places.of_span(unit, f.span): f for unit in units for f in unit.functions}
    engine.begin(
        (f for place, f in functions.items() if place in known),
        {f: left[place] for place, f in functions.items() if place in left},
        work,
    )
    done = [(run, Evidence(engine, run)) for run in runs(engine, units, named)]
    held = [(run, evidence, kept) for run, evidence in done for kept in retentions(run, evidence)]
    passes = [Passes(engine, run, evidence) for run, evidence in done]
    handing = list(discarded(engine, done))
    training = differentiating(run for run, _ in done)
    again = [(run, evidence, one) for run, evidence in done for one in retained(run, evidence, training)]
    guards = Guards()
    shut = [one for run, evidence in done for one in closed(run, evidence, guards)]
    needed = [one.point for _, _, one in again if one.needed] + [one.point for _, _, one in handing if one.needed]
    return Outcome(
        tuple(places.kept(engine, held)),
        frozenset(places.wanted(held)),
        tuple(places.wasted(engine, passes)),
        (*places.retained(again), *places.discarded(handing), *places.closed(shut)),
        frozenset((*(places.of(p.chain()[0]) for p in needed), *(places.of_guard(o.guard) for o in shut if o.leaves))),
        (
            *places.noted(done),
            *places.collecting(engine, done),
            *places.failures(engine, done),
            *places.deferred(done),
            *places.served(services(engine, done)),
        ),
        frozenset(places.of(site) for one in passes for site in one.differentiated()),
        frozenset(places.of(s) for run in passes for p in run.all if p.reason is None for s in p.point.chain()),
        frozenset(places.of(s) for run, evidence in done for p in needing(run, evidence) for s in p.chain()),
        frozenset(places.left(done, Readers(units, {name for user in users for name in user.mentioned}))),
        frozenset(places.of_span(f.unit, f.span) for f in engine.called),
        {places.of_span(f.unit, f.span): mode for f, mode in engine.left.items()},
        frozenset(mentions(units)),
        frozenset(map(sources.path, engine.imported(units))),
        frozenset(sources.sought),
        not engine.is_finished(),
    )


class _Places:
    """Says where things stand."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def of_span(self, unit: Unit, span: Span) -> Place:
        return Place(self._sources.path(unit), span)

    def of(self, op: Op) -> Place:
        return self.of_span(op.owner.unit, op.span)

    def kept(self, engine: Engine, held: Iterable[tuple[Run, Evidence, Retention]]) -> Iterator[Case]:
        for run, evidence, kept in held:
            code = _code_of(kept)
            if code == "TML102" and run.life is not None and roles.is_in_step_of_lightning(engine, kept.point.chain()):
                code = "TML701"
            if code is not None and kept.point.chain():
                yield self._case(run, evidence, kept, code)

    def noted(self, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
        for run, evidence in done:
            for note in notes(run):
                place, *calls = map(self.of, note.point.chain())
                within = self._first(note.within)
                yield Case(place, "TML202", frozenset(), within=within, calls=tuple(calls), remark=note.what)
            for one in bypasses(run, evidence):
                place, *calls = map(self.of, one.point.chain())
                graphs = self._graphs(self._begun(run, evidence, one.sources))
                by = self.of(one.by)
                yield Case(place, "TML205", one.doubts, graphs=graphs, within=by, calls=tuple(calls), access=one.access)
            for kept in collected(run, evidence):
                place, *calls = map(self.of, kept.point.chain())
                moves = tuple(self.of(point.chain()[0]) for point in (kept.on_device, kept.to_host))
                yield Case(place, "TML508", kept.doubts, how=How.COLLECTION, calls=tuple(calls), moves=moves)

    def of_guard(self, guard: Guard) -> Place:
        return self.of_span(guard.function.unit, guard.span)

    def closed(self, found: Iterable[Closed]) -> Iterator[Case]:
        for one in found:
            if not one.leaves:
                runs = tuple(map(self.of, one.passes))
                yield Case(self.of_guard(one.guard), "TML204", one.doubts, advice=True, runs=runs)

    def collecting(self, engine: Engine, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
        for run, evidence in done:
            for one in collecting(engine, run):
                made = self.of(one.settings) if one.settings is not None else None
                yield Case(self.of(one.made), "TML702", evidence.cut, graphs=(self.of(one.wide),), within=made)

    def failures(self, engine: Engine, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
        failures = Failures(engine)
        for run, evidence in done:
            for one in failures.of(run, evidence):
                how = How.SLOT if one.keeps else None
                yield Case(self.of(one.at), "TML109", one.doubts, how=how, graphs=(self.of(one.failed),))

    def served(self, found: Iterable[Service]) -> Iterator[Case]:
        for one in found:
            place, *calls = map(self.of, one.point.chain())
            yield Case(place, one.code, frozenset(), calls=tuple(calls), service=one, shown=self._first(one.shown))

    def deferred(self, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
        for run, evidence in done:
            for one in deferred(run, evidence):
                sites = one.point.chain()
                if sites and one.kept.chain():
                    place = _meeting(sites, one.kept.chain())  # told where it is decided when backward runs
                    calls = tuple(map(self.of, sites[sites.index(place) + 1 :]))
                    graphs = self._graphs(self._begun(run, evidence, one.sources))
                    yield Case(
                        self.of(place),
                        "TML108",
                        one.doubts,
                        how=one.how,
                        graphs=graphs,
                        calls=calls,
                        kept=self._first(one.kept),
                    )

    def wanted(self, held: Iterable[tuple[Run, Evidence, Retention]]) -> Iterator[Place]:
        for _, _, kept in held:
            if kept.grows and (kept.fate is Fate.LATER or Doubt.READER in kept.doubts):
                yield from map(self.of, kept.point.chain())

    def _case(self, run: Run, evidence: Evidence, kept: Retention, code: str) -> Case:
        begun = self._begun(run, evidence, kept.sources)
        sites = kept.point.chain()
        place, *calls = map(self.of, sites)
        met = self.of(_meeting(sites, begun[0].chain())) if begun else place
        within = None
        if met.path != place.path:  # kept by what a file hands to another: told where it is handed over
            place, within, calls = met, place, calls[calls.index(met) + 1 :]
        loop = kept.loop.site if kept.loop is not None else None
        return Case(
            place,
            code,
            kept.doubts,
            not kept.grows,
            kept.how,
            loop=self.of(loop) if isinstance(loop, Op) else None,
            graphs=self._graphs(begun),
            within=within,
            calls=tuple(calls),
            spent=kept.spent,
            backward=self._first(_backward(run, kept)) if kept.spent else None,
            stored=kept.stored,
        )

    def wasted(self, engine: Engine, passes: Iterable[Passes]) -> Iterator[Waste]:
        for seen, one in ((run, p) for run in passes for p in run.all if p.reason is not None):
            sites = one.point.chain()
            if one.reason is Reason.ROLE:  # told in what infers, not in what training may run, too
                sites = list(dropwhile(lambda site: not roles.is_for_users(engine, site.owner), sites))
            if not sites:
                continue  # an entry that is itself a network's
            own = tuple(not roles.is_of_forward(engine, site.owner) for site in sites)
            calls = tuple(map(self.of, sites))
            owners = [_definition(site.owner) for site in sites]
            functions = tuple(self.of_span(f.unit, f.span) if f.parent is not None else None for f in owners)
            case = Case(
                calls[0],
                _code(one),
                one.doubts,
                reason=one.reason,
                runs=tuple(self._forwards(engine, one)),
                unmade=seen.is_unmade(one),
                repeated=bool(one.loops) or roles.is_given(seen.run.entry),
                making=not one.loops and any(f.cls is not None and f.name == "__init__" for f in owners),
                switched=self._first(one.switched),
                kept=self._first(one.kept),
            )
            yield Waste(calls, own, functions, case)

    def left(self, done: Iterable[tuple[Run, Evidence]], readers: Readers) -> Iterator[Left]:
        for store in (store for run, evidence in done for store in stores(run, evidence)):
            places = tuple(map(self.of, store.point.chain()))
            if places and readers.may_read(store):
                made = store.made.chain() if store.made is not None else ()
                yield Left(places, tuple(map(self.of, made)))

    def retained(self, found: Iterable[tuple[Run, Evidence, Retained]]) -> Iterator[Case]:
        for run, evidence, one in found:
            if not one.needed:
                place, *calls = map(self.of, one.point.chain())
                graphs = self._graphs(self._begun(run, evidence, one.sources))
                yield Case(place, "TML105", one.doubts, graphs=graphs, calls=tuple(calls), creates=one.creates)

    def discarded(self, found: Iterable[tuple[Run, Evidence, Discarded]]) -> Iterator[Case]:
        for run, evidence, one in found:
            step, zeroed, alone = self._first(one.step), self._first(one.zeroed), self._first(one.alone)
            if not one.needed and step is not None and zeroed is not None:
                place, *calls = map(self.of, one.point.chain())
                graphs = self._graphs(self._begun(run, evidence, one.makers))
                how = Discarding(step, zeroed, one.given, alone, one.spares)
                backward = self._first(one.backward)
                yield Case(
                    place, "TML107", one.doubts, graphs=graphs, calls=tuple(calls), backward=backward, discarding=how
                )

    def _graphs(self, begun: Iterable[Point]) -> tuple[Place, ...]:
        return tuple(dict.fromkeys(self.of(point.chain()[0]) for point in begun))

    def _first(self, point: Point | None) -> Place | None:
        chain = point.chain() if point is not None else []
        return self.of(chain[0]) if chain else None

    def _forwards(self, engine: Engine, one: Pass) -> Iterator[Place]:
        for module in sorted(one.module, key=lambda module: module.serial):
            if type(module) is Object and module.kind is Kind.INSTANCE:
                forward = engine.index.method(module.about.cls, "forward")
                if forward is not None:
                    yield self.of_span(forward.unit, forward.span)

    @staticmethod
    def _begun(run: Run, evidence: Evidence, sources: frozenset[Source]) -> list[Point]:
        """Where the graphs begin that sources have: at passes, or else at calls that may have run one.

        In order of place: the order in which an engine met them depends on the process.
        """
        graphs = [s for s in run.provenance.ancestors(sources) if evidence.graph(s) is not None]
        passes = list(filter(evidence.is_pass, graphs))
        found = set()
        for source in passes or graphs:
            begins = root(source) if type(source) is Behind else source
            if isinstance(begins, Graph | Result) and isinstance(begins.site, Op):
                found.add(Point(begins.site, begins.context))
        return sorted(found, key=lambda point: [(op.owner.unit.name, op.span) for op in point.chain()])


def _definition(function: Function) -> Function:
    """Return the function around a generator expression."""
    while function.name == "<genexpr>" and function.parent is not None:
        function = function.parent
    return function


def _backward(run: Run, kept: Retention) -> Point | None:
    """Return the first backward pass that runs through what is kept."""
    for event in run.of(fx.Differentiate):
        effect = event.effect
        assert isinstance(effect, fx.Differentiate)
        if not kept.sources.isdisjoint(run.provenance.ancestors(effect.sources)):
            return effect.point
    return None


def _meeting(stored: list[Op], begun: list[Op]) -> Op:
    """The operation that leads to where a graph is stored, in the function in which also what begins it is called."""
    if len(begun) > CONTEXT_LIMIT:
        return stored[0]  # who called it is not known to the end
    common = 0
    while common < min(len(stored) - 1, len(begun)) and stored[-1 - common] is begun[-1 - common]:
        common += 1
    return stored[-1 - common]


def _code(one: Pass) -> str:
    return "TML203" if one.reason in (Reason.DETACHED, Reason.UNTRAINED) else "TML201"


_GROWING = {
    How.SUM: "TML101",
    How.COLLECTION: "TML102",
    How.HOOK: "TML106",
    How.CACHE: "TML103",
    How.OUTPUT: "TML701",
}


def _code_of(kept: Retention) -> str | None:
    if kept.grows:
        if kept.how is How.SUM and kept.fate is Fate.EACH:
            return "TML104"
        if kept.fate in (Fate.EACH, Fate.LATER):
            return None
        return _GROWING[kept.how]
    if kept.fate is Fate.NEVER and kept.useless:
        return "TML106" if kept.how is How.HOOK else "TML103"
    return None
