"""Outcomes: what the runs of some files show, said of places in files and not of the engine's objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from torchmemlint.doubts import Confidence, Doubt, confidence
from torchmemlint.flow.domain.effects import How, Point
from torchmemlint.flow.domain.refs import Behind, Graph, Result, Source, root
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.entries import runs
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.passes import Pass, Passes, Reason
from torchmemlint.flow.fact.retention import Fate, Retention, retentions
from torchmemlint.flow.ir.ops import Op, Span, Unit
from torchmemlint.flow.names.index import Index
from torchmemlint.flow.names.sources import Sources


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A stretch of a file; lines from 1, columns in bytes of UTF-8 from 0, as in `ast`."""

    path: Path
    span: Span


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
    calls: tuple[Place, ...] = ()  # that led there, innermost first
    spent: bool = False  # has backward run through the graphs?

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
    case: Case

    def at(self, number: int) -> Case:
        """The case at one of the calls."""
        return replace(self.case, place=self.calls[number], calls=self.calls[number + 1 :])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the runs of some files show."""

    kept: tuple[Case, ...]
    wanted: frozenset[Place]  # what keeps graphs that are differentiated later, or may be, and the calls that led there
    wasted: tuple[Waste, ...]
    used: frozenset[Place]  # calls that led to passes that are differentiated
    called: frozenset[Place]  # functions


def outcome(sources: Sources, files: Iterable[Path], called: Iterable[Place]) -> Outcome:
    """Run some files. `called` are functions that the files which import them call: those are seen in their runs."""
    engine = Engine(Index(sources))
    units = [unit for path in files if (unit := sources.unit(path)) is not None]
    for unit in units:
        engine.index.add(unit)
    known = set(called)
    places = _Places(sources)
    engine.called.update(f for unit in units for f in unit.functions if places.of_span(unit, f.span) in known)
    done = [(run, Evidence(engine, run)) for run in runs(engine, units)]
    held = [(run, evidence, kept) for run, evidence in done for kept in retentions(run, evidence)]
    passes = [Passes(engine, run, evidence) for run, evidence in done]
    return Outcome(
        tuple(places.kept(held)),
        frozenset(places.wanted(held)),
        tuple(places.wasted(engine, passes)),
        frozenset(places.of(site) for one in passes for site in one.differentiated()),
        frozenset(places.of_span(f.unit, f.span) for f in engine.called),
    )


class _Places:
    """Says where things stand."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def of_span(self, unit: Unit, span: Span) -> Place:
        return Place(self._sources.path(unit), span)

    def of(self, op: Op) -> Place:
        return self.of_span(op.owner.unit, op.span)

    def calls(self, point: Point) -> tuple[Place, ...]:
        return tuple(self.of(site) for site in point.chain())

    def kept(self, held: Iterable[tuple[Run, Evidence, Retention]]) -> Iterator[Case]:
        for run, evidence, kept in held:
            code = _code_of(kept)
            if code is not None:
                place, *calls = self.calls(kept.point)
                loop = kept.loop.site if kept.loop is not None else None
                yield Case(
                    place,
                    code,
                    kept.doubts,
                    not kept.grows,
                    kept.how,
                    loop=self.of(loop) if isinstance(loop, Op) else None,
                    graphs=self._graphs(run, evidence, kept.sources),
                    calls=tuple(calls),
                    spent=kept.spent,
                )

    def wanted(self, held: Iterable[tuple[Run, Evidence, Retention]]) -> Iterator[Place]:
        for _, _, kept in held:
            if kept.grows and (kept.fate is Fate.LATER or Doubt.READER in kept.doubts):
                yield from self.calls(kept.point)

    def wasted(self, engine: Engine, passes: Iterable[Passes]) -> Iterator[Waste]:
        for one in (p for some in passes for p in some.all() if p.reason is not None):
            sites = one.point.chain()
            own = tuple(not roles.is_of_forward(engine, site.owner) for site in sites)
            calls = tuple(map(self.of, sites))
            yield Waste(calls, own, Case(calls[0], _code(one), one.doubts, reason=one.reason))

    def _graphs(self, run: Run, evidence: Evidence, sources: frozenset[Source]) -> tuple[Place, ...]:
        found: dict[Place, None] = {}
        for source in sorted(run.provenance.ancestors(sources), key=lambda s: s.serial):
            begins = root(source) if type(source) is Behind else source
            site = begins.site if isinstance(begins, Graph | Result) else None
            if isinstance(site, Op) and evidence.graph(source) is not None:
                found[self.of(site)] = None
        return tuple(found)


def _code(one: Pass) -> str:
    return "TML203" if one.reason is Reason.DETACHED else "TML201"


def _code_of(kept: Retention) -> str | None:
    if kept.grows:
        if kept.how is How.SUM and kept.fate is Fate.EACH:
            return "TML104"
        if kept.fate in (Fate.EACH, Fate.LATER):
            return None
        return {How.SUM: "TML101", How.COLLECTION: "TML102", How.HOOK: "TML106", How.CACHE: "TML103"}[kept.how]
    if kept.fate is Fate.NEVER and kept.spent:
        return "TML106" if kept.how is How.HOOK else "TML103"
    return None
