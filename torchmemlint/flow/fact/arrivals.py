"""Arrivals: where graphs go that something may need, so that two texts of a file can be compared.

Left out is what comes of what a finding is about: passes that are waste, what is kept for nothing, and what backward
goes on into for nothing. A fix is there to take those graphs away, and a safe one must lose no other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import TypeAlias

from torchmemlint.closure import closure
from torchmemlint.doubts import Doubt, is_sure
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import HOLDERS, Mode, reached
from torchmemlint.flow.domain.manners import Reading, Remark
from torchmemlint.flow.domain.refs import Bare, Begun, Behind, Derived, Input, Phi, Point, Result, Source, root
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.fact.codes import code_of_kept
from torchmemlint.flow.fact.details import Arrival, Arriving, Begin, Graphs
from torchmemlint.flow.fact.discarding import Discarded
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.passes import Passes
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.fact.retention import Retention
from torchmemlint.flow.fact.reusing import reused_with_graphs
from torchmemlint.flow.fact.samples import is_sampling
from torchmemlint.flow.fact.storing import Readers, stored, teaching
from torchmemlint.flow.ir.ops import Function, Op

Arrived: TypeAlias = tuple[Arriving, tuple[Place, ...], Begin]


@dataclass
class Arrivals:
    """What arrives in some runs, but for those that were cut: of texts that differ in little those say other things."""

    places: Places
    done: Collection[Passes]
    readers: Readers
    held: Collection[tuple[Run, Evidence, Retention]]
    handing: Collection[tuple[Run, Evidence, Discarded]]

    def all(self) -> Iterator[Arrival]:
        """Yield it."""
        told = {False: self._told(sure=False), True: self._told(sure=True)}
        for passes in self.done:
            if not passes.run.cut:
                surely = set(_Arriving(self.places, self.readers, passes, *told[False]).all())
                for one in set(_Arriving(self.places, self.readers, passes, *told[True]).all()):
                    yield Arrival(*one, one not in surely)

    def _told(self, *, sure: bool) -> tuple[set[Point], set[Source], dict[Point, set[Source]]]:
        """Return where passes are waste, what is kept, and what each backward goes on into, for nothing."""

        def counts(doubts: frozenset[Doubt]) -> bool:
            return not sure or is_sure(doubts)

        waste = {one.point for run in self.done for one in run.all if one.reason is not None and counts(one.doubts)}
        kept: set[Source] = set()
        for run, _, one in self.held:
            if code_of_kept(one) is not None and counts(one.doubts):
                kept |= run.provenance.ancestors(one.sources)
        discarded: dict[Point, set[Source]] = {}
        for _, _, other in self.handing:
            if other.backward is not None and counts(other.doubts):
                discarded.setdefault(other.backward, set()).update(other.makers)
        return waste, kept, discarded


@dataclass
class _Arriving:
    """What arrives in one run, and comes of nothing that is wasted, kept or discarded."""

    places: Places
    readers: Readers
    passes: Passes
    waste: set[Point]
    kept: set[Source]
    discarded: dict[Point, set[Source]]

    def __post_init__(self) -> None:
        run = self.run = self.passes.run
        self.evidence = self.passes.evidence
        self._wasted = {tuple(point.chain()) for point in self.waste} - {()}
        self._called = {call.result for call in run.unseen() if call.mode is not Mode.OFF} - self.evidence.made

    def all(self) -> Iterator[Arrived]:
        run, kept, rerun = self.run, self.kept, self.evidence.read.get(Reading.RERUN, set())
        for effect in run.effects(fx.Differentiate):
            discarded = self.discarded.get(effect.point, set())
            yield from self._arrive(Arriving.DIFFERENTIATED, self._chain(effect.point), effect.sources, discarded)
            # Also those of a waste: they change its state.
            for source in run.provenance.ancestors(effect.sources) & rerun:
                yield Arriving.RERUN, self._chain(effect.point), self._begin(root(source))
        for read in run.effects(fx.Read):
            if read.reading is Reading.HOOKED:
                yield from self._arrive(Arriving.HOOKED, self._chain(read.point), read.sources, set())
        if run.entry.parent is not None:
            yield from self._arrive(Arriving.RETURNED, (self._function(run.entry),), run.returned, kept)
        for store, sources in stored(run):
            if self.readers.may_read(store):
                yield from self._arrive(Arriving.STORED, self._chain(store.point), sources, kept)
        for call in run.unseen():
            given = {s for value in call.arguments.all() for s in reached(run.state, value, HOLDERS)}
            yield from self._arrive(Arriving.GIVEN, self._chain(call.point), given, kept, self._around(call.point))
        for call in teaching(run, self.evidence):
            if call.mode is not Mode.OFF:
                yield Arriving.TRAINED, self._chain(call.point), ((), "")
        for how, point in reused_with_graphs(self.passes):
            yield how, self._chain(point), ((), "")
        for note in run.effects(fx.Note):
            if note.what is Remark.ASKED and note.mode is not Mode.OFF:
                yield Arriving.ASKED, self._chain(note.point), ((), "")
            if note.what is Remark.DETACHED:
                yield Arriving.DETACHED, self._chain(note.point), ((), self._detached(note.of).value)

    def _detached(self, of: Value) -> Graphs:
        """Return whether a value has a graph that is detached."""
        if any(self.evidence.graph(source) is not None for source in of.graph):
            return Graphs.SEEN
        parents = self.run.provenance.parents

        def above(source: Source) -> Iterable[Source]:
            return () if type(source) is Bare else parents.get(source, ())

        begin = (
            s for s in closure(of.graph, above) if not (type(s) is Bare or (isinstance(s, Phi | Derived) and above(s)))
        )
        return Graphs.NONE if not of.open and all(map(self._is_without, begin)) else Graphs.UNKNOWN

    def _is_without(self, source: Source) -> bool:
        """Does it come of a network that was run with gradients off, and whose code was not seen?"""
        begin = root(source)
        networks = self.evidence.callees.get(begin, set()) & self.evidence.networks
        return bool(networks) and self.evidence.modes.get(begin) is Mode.OFF

    def _around(self, point: Point) -> Set[tuple[Op | Function, ...]]:
        """Return what a graph that begins within it cannot leave: a pass that is waste, or the making of a sample."""
        chain = point.chain()
        found: set[tuple[Op | Function, ...]] = {(op.owner,) for op in chain if is_sampling(op.owner)}
        calls = (tuple(chain[number:]) for number in range(1, len(chain)))
        return found.union(call for call in calls if call in self._wasted)

    def _arrive(
        self,
        how: Arriving,
        at: tuple[Place, ...],
        sources: Iterable[Source],
        idle: Set[Source],
        around: Set[tuple[Op | Function, ...]] = frozenset(),
    ) -> Iterator[Arrived]:
        """Yield what arrives of some sources, but for what is `idle`, or begins within the same thing `around` it."""
        parents = self.run.provenance.parents

        def is_idle(source: Source) -> bool:
            begin = root(source)
            if source in idle or begin in idle:
                return True
            if not isinstance(begin, Begun | Result):
                return False
            point = Point(begin.site, begin.context)
            return point in self.waste or (bool(around) and not around.isdisjoint(self._around(point)))

        def above(source: Source) -> Iterable[Source]:
            if type(source) is Bare or is_idle(source):
                return ()
            above = parents.get(source, ())
            return (*above, source.base) if type(source) is Behind else above

        for source in closure(sources, above):
            if not is_idle(source) and self._may_begin(how, source):
                yield how, at, self._begin(root(source))

    def _may_begin(self, how: Arriving, source: Source) -> bool:
        """May a graph begin there that has to do with how it arrives?"""
        if self.evidence.graph(source) is not None:
            return True
        return how in (Arriving.DIFFERENTIATED, Arriving.STORED) and root(source) in self._called

    def _chain(self, point: Point) -> tuple[Place, ...]:
        return tuple(map(self.places.of, point.chain()))

    def _function(self, function: Function) -> Place:
        """Return where a function begins: where it ends, changes with what it holds."""
        row, column, *_ = function.span
        return self.places.of_span(function.unit, (row, column, row, column))

    def _begin(self, source: Source) -> Begin:
        match source:
            case Input(function=function, name=name):
                return (self._function(function),), str(name)
            case Begun() | Result():
                return self._chain(Point(source.site, source.context)), ""
        return (), type(source).__name__
