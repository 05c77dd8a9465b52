"""Places: what runs show is said of stretches of files, in which it is reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import dropwhile
from typing import Any

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import TAKEN_UP, How, Stored
from torchmemlint.flow.domain.refs import CONTEXT_LIMIT, Behind, Counted, Graph, Object, Point, Result, Source, root
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import details, roles
from torchmemlint.flow.fact.activating import OutOfPlace
from torchmemlint.flow.fact.callers import kin
from torchmemlint.flow.fact.closing import Closed, Guard, Guarding
from torchmemlint.flow.fact.codes import code_of_kept, code_of_pass
from torchmemlint.flow.fact.collecting import collected
from torchmemlint.flow.fact.data import bypasses
from torchmemlint.flow.fact.deferring import deferred
from torchmemlint.flow.fact.details import (
    Activating,
    Again,
    Bound,
    Copied,
    Discarding,
    Feeding,
    Held,
    Memo,
    Overwriting,
    Serving,
)
from torchmemlint.flow.fact.discarding import Discarded
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.extents import is_pretrained
from torchmemlint.flow.fact.failures import Failures
from torchmemlint.flow.fact.feeding import Fed
from torchmemlint.flow.fact.layers import Builders
from torchmemlint.flow.fact.leftover import leftovers
from torchmemlint.flow.fact.lingering import lingering
from torchmemlint.flow.fact.loading import Loading
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.outcomes import Case, Waste
from torchmemlint.flow.fact.outdated import Outdated
from torchmemlint.flow.fact.overwriting import Overwritten
from torchmemlint.flow.fact.passes import Passes
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.reasons import Pass, Reason
from torchmemlint.flow.fact.recording import Recording
from torchmemlint.flow.fact.records import Kept
from torchmemlint.flow.fact.retaining import Retained
from torchmemlint.flow.fact.retention import Fate, Retention, backward_through
from torchmemlint.flow.fact.samples import Memoised
from torchmemlint.flow.fact.sequence import meeting
from torchmemlint.flow.fact.services import Service
from torchmemlint.flow.fact.smallness import small
from torchmemlint.flow.fact.storing import is_handed_out
from torchmemlint.flow.fact.trainers import collecting
from torchmemlint.flow.fact.zeroing import Zeroing
from torchmemlint.flow.ir.ops import Class, Function, Op, Span, Unit
from torchmemlint.flow.ir.reaching import hands_back
from torchmemlint.flow.names.sources import Sources
from torchmemlint.knowledge import activations, checkpoints


class Places:
    """Says where things stand."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def of_span(self, unit: Unit, span: Span) -> Place:
        """Return where something of a file stands."""
        return Place(self._sources.path(unit), span)

    def text_of(self, unit: Unit) -> str:
        """Return the text of a file."""
        return self._sources.text(self._sources.path(unit))

    def of(self, op: Op) -> Place:
        """Return where an operation stands."""
        return self.of_span(op.owner.unit, op.span)

    def at(self, point: Point, code: str, doubts: frozenset[Doubt] = frozenset(), **more: Any) -> Case:
        """Return a case where something happens, with the calls that led there."""
        place, *calls = map(self.of, point.chain())
        return Case(place, code, doubts, calls=tuple(calls), **more)

    def kept(self, engine: Engine, held: Iterable[tuple[Run, Evidence, Retention]]) -> Iterator[Case]:
        """Yield the graphs that are kept."""
        for run, evidence, kept in held:
            code = code_of_kept(kept)
            if code == "TML102" and run.life is not None and roles.is_in_step_of_lightning(engine, kept.point.chain()):
                code = "TML701"
            if code is not None and kept.point.chain():
                yield self._case(run, evidence, kept, code)

    def noted(self, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
        """Yield what is remarkable by itself, done past autograd, or collected on a device."""
        for run, evidence in done:
            for note in run.effects(fx.Note):  # what only a caller knows that was not seen is not remarkable
                if note.what not in TAKEN_UP and note.flag.known and note.point.chain():
                    yield self.at(note.point, "TML202", within=self.first(note.within), remark=note.what)
            for one in bypasses(run, evidence):
                graphs = self.begun(run, evidence, one.sources)
                yield self.at(one.point, "TML205", one.doubts, graphs=graphs, within=self.of(one.by), about=one.access)
            for kept in collected(run, evidence):
                moves = tuple(self.of(point.chain()[0]) for point in (kept.on_device, kept.to_host))
                yield self.at(kept.point, "TML508", kept.doubts, how=How.COLLECTION, moves=moves)

    def of_guard(self, guard: Guard) -> Place:
        """Return where gradients are turned off."""
        return self.of_span(guard.function.unit, guard.span)

    def closed(self, found: Iterable[Closed]) -> Iterator[Case]:
        """Yield what runs without gradients and lets no tensor out."""
        for one in found:
            if not one.leaves:
                runs = tuple(map(self.of, one.passes))
                yield Case(self.of_guard(one.guard), "TML204", one.doubts, advice=True, runs=runs)

    def collecting(self, engine: Engine, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
        """Yield trainers that collect what they evaluate on the device."""
        for run, evidence in done:
            for one in collecting(engine, run):
                made = self.of(one.settings) if one.settings is not None else None
                shown, asked = (self.of(one.wide),), tuple(map(self.of, one.asked))
                yield Case(self.of(one.made), "TML702", evidence.cut, graphs=shown, within=made, runs=asked)

    def failures(self, engine: Engine, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
        """Yield what keeps an exception, or runs on where one is handled."""
        failures = Failures(engine)
        for run, evidence in done:
            for one in failures.of(run, evidence):
                how = How.SLOT if one.keeps else None
                yield Case(self.of(one.at), "TML109", one.doubts, how=how, graphs=(self.of(one.failed),))

    def served(self, found: Iterable[Service]) -> Iterator[Case]:
        """Yield calls that manage memory or watch the program."""
        for one in found:
            serving = Serving(one.name, one.each, self.first(one.shown), one.inside)
            yield self.at(one.point, one.code, about=serving)

    def lingering(self, engine: Engine, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
        """Yield large results that a variable holds while the next iteration runs the same pass."""
        for run, evidence in done:
            for one in lingering(engine, run, evidence):
                held = Held(one.name, self.of(one.shown), one.wide)
                yield self.at(one.point, "TML602", one.doubts, loop=self.of(one.loop), about=held)

    def memoised(self, found: Iterable[Memoised]) -> Iterator[Case]:
        """Yield what keeps the samples of data sets."""
        for one in found:
            at, made = (self.of(op) if op is not None else None for op in (one.at, one.made))
            loader = self.first(one.loader.point) if one.loader is not None else None
            workers = one.loader.workers if one.loader is not None else None
            count = workers.value if workers is not None and not workers.chosen else None
            place = self.of_span(one.method.unit, one.decorator.span) if one.decorator is not None else at
            if place is not None:
                memo = Memo(one.cls.name, one.attribute, at, made, loader, count if isinstance(count, int) else None)
                yield Case(place, "TML110", frozenset(), advice=loader is None, about=memo)

    def loaded(self, loading: Loading) -> Iterator[Case]:
        """Yield the files that are read to where they were saved, and those whose contents stay bound."""
        from_host = loading.saves_from_host
        for one in loading.of_owners():
            place = self.of(one.op)
            copied, module, saved = map(self.first, (one.copied, one.module, one.saved))
            if one.name in checkpoints.PUBLISHED and checkpoints.PUBLISHED_ON_HOST in self._sources.text(place.path):
                continue
            if copied or module or saved or one.returned:
                more = one.to_modules, not one.open, from_host, loading.is_mixed(one), one.small
                about = details.Loading(one.name, copied, module, saved, *more)
                unknown = not (copied or module or saved) or one.name in checkpoints.PUBLISHED  # none, or on the host
                yield Case(place, "TML504", frozenset({Doubt.SIZE} if unknown else ()), about=about)
        for left in leftovers(loading.loads.values()):
            load, after = left.load, self.of(left.after) if left.after is not None else None
            places = (self.of(left.copied), self.of(left.last), self.of(left.work), after)
            bound = Bound(left.names, load.on_host, load.as_saved, *places)
            lasts = left.trains and not load.on_host and not load.small  # beside what training needs, all the time
            yield Case(self.of(load.op), "TML506", frozenset(() if lasts else {Doubt.SIZE}), about=bound)

    def fed(self, found: Iterable[Fed]) -> Iterator[Case]:
        """Yield loaders that take more than they need."""
        for one in found:
            point = one.moved if one.moved is not None and one.code == "TML403" else one.loader.point
            place, *calls = map(self.of, point.chain())
            value = one.workers.value if one.workers is not None else None
            how = Feeding(
                self.of(one.loader.point.chain()[0]),
                one.loader.flag("pin_memory", False) is True,
                value.name if isinstance(value, Counted) else value,
                "num_workers" in one.loader.given,
                one.workers is not None and one.workers.chosen,
                self.of(one.counted) if one.counted is not None else None,
                one.ahead,
                one.ranks,
                self.first(one.iterated),
                self.of(one.again) if one.again is not None else None,
                self.first(one.moved),
                tuple(self.of(point.chain()[0]) for point in one.beside),
            )
            copied = self._copied(*one.copied, how) if one.copied is not None else None
            if copied is not None and copied.entry.path == copied.cls.path:
                yield Case(copied.entry, one.code, one.doubts, about=copied)
            elif point is one.loader.point or place.path == how.loader.path:  # others may give it other batches
                yield Case(place, one.code, one.doubts, calls=tuple(calls), about=copied or how)

    def _copied(self, cls: Class, kept: Kept, by: Feeding) -> Copied:
        entry, source, read = map(self.of, (kept.entry, kept.source, kept.read))
        return Copied(self.of_span(cls.unit, cls.span), cls.name, kept.attribute, kept.what, entry, source, read, by)

    def zeroed(self, found: Iterable[Zeroing]) -> Iterator[Case]:
        """Yield gradients that are zeroed where they lie."""
        return (self.at(one.point, "TML601", frozenset({Doubt.SIZE}), about=one.shown) for one in found)

    def deferred(self, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
        """Yield what is summed up to be differentiated at once."""
        for run, evidence in done:
            for one in deferred(run, evidence):
                sites = one.point.chain()
                if sites and one.kept.chain():
                    place = meeting(sites, one.kept.chain())  # told where it is decided when backward runs
                    calls = tuple(map(self.of, sites[sites.index(place) + 1 :]))
                    graphs = self.begun(run, evidence, one.sources)
                    yield Case(
                        self.of(place),
                        "TML108",
                        one.doubts,
                        how=one.how,
                        graphs=graphs,
                        calls=calls,
                        kept=self.first(one.kept),
                    )

    def activating(self, found: Iterable[OutOfPlace]) -> Iterator[Case]:
        """Yield activations that could work in place."""
        for one in found:
            uses = tuple((use.producer, self._at(use.made), self._at(use.applied)) for use in one.uses)
            doubts = frozenset({Doubt.SIZE} if one.narrow or one.kind not in activations.SAVES_ONE else ())
            yield Case(self.of(one.built), "TML301", doubts, about=Activating(one.kind, uses))

    def overwriting(self, found: Iterable[Overwritten]) -> Iterator[Case]:
        """Yield what is overwritten although it is still needed."""
        for one in found:
            other, target, built = map(self._at, (one.other, one.target, one.built))
            how = Overwriting(one.need, one.sign, one.what, other, target, built, one.refused)
            yield Case(self.of(one.at), "TML302", one.doubts, about=how)

    def _at(self, op: Op | None) -> Place | None:
        return self.of(op) if op is not None else None

    def wanted(self, held: Iterable[tuple[Run, Evidence, Retention]]) -> Iterator[Place]:
        """Yield what keeps graphs that are, or may be, differentiated later."""
        for _, _, kept in held:
            if kept.grows and (kept.fate is Fate.LATER or Doubt.READER in kept.doubts):
                yield from map(self.of, kept.point.chain())

    def _case(self, run: Run, evidence: Evidence, kept: Retention, code: str) -> Case:
        begun = self._begun(run, evidence, kept.sources)
        sites = kept.point.chain()
        place, *calls = map(self.of, sites)
        whole = [point for point in begun if len(point.chain()) <= CONTEXT_LIMIT]  # others may have more callers
        met = self.of(meeting(sites, (whole or begun)[0].chain())) if begun else place
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
            backward=self.first(backward_through(run, kept)) if kept.spent else None,
            stored=Stored.GRAPH if is_handed_out(kept.point.site) else kept.stored,
        )

    def wasted(self, engine: Engine, builders: Builders, passes: Collection[Passes]) -> Iterator[Waste]:
        """Yield the passes for which nothing needs gradients."""
        little, recording = small(engine, passes), Recording(engine, builders)
        guarding = Guarding(seen.run for seen in passes)
        for seen, one in ((run, p) for run in passes for p in run.all if p.reason is not None):
            sites = one.point.chain()
            if one.reason is Reason.ROLE:  # told in what infers, not in what training may run, too
                sites = roles.outermost(
                    engine, dropwhile(lambda site: not roles.is_for_users(engine, site.owner), sites)
                )
            if not sites:
                continue  # an entry that is itself a network's
            own = tuple(not roles.is_of_forward(engine, site.owner) for site in sites)
            calls = tuple(map(self.of, sites))
            owners, forwards = [site.owner.definition for site in sites], list(_forwards(engine, one))
            functions = tuple(self.of_span(f.unit, f.span) if f.parent is not None else None for f in owners)
            repeated = bool(one.loops) or roles.is_given(seen.run.entry)
            amount = None if one.kept is not None else recording.amount(one) or little.get(sites[0])  # it grows
            known = engine.index.contracts
            is_large = amount.is_much if amount else any(is_pretrained(known, network) for network in one.module)
            doubts = {
                Doubt.UNDIFFERENTIATED: guarding.is_doubtful(seen.run, one),
                Doubt.SIZE: not repeated and not is_large,  # once is worth it for much
            }
            case = Case(
                calls[0],
                code_of_pass(one),
                one.doubts.union(doubt for doubt, holds in doubts.items() if holds),
                reason=one.reason,
                through=one.through,
                runs=tuple(self.of_span(forward.unit, forward.span) for forward in forwards),
                hands_back=any(map(hands_back, forwards)),
                unmade=seen.is_unmade(one),
                repeated=repeated,
                making=not one.loops and any(f.cls is not None and f.name == "__init__" for f in owners),
                switched=self.first(one.switched),
                kept=self.first(one.kept),
                little=sites[0] in little,
                amount=amount,
            )
            entry = seen.run.entry
            if seen.run.method_of is not None and roles.is_called_by_name(engine, entry):
                others = tuple(self.of_span(other.unit, other.span) for other in kin(engine, entry))
                yield Waste(calls, own, functions, case, entry.name, others)
            else:
                yield Waste(calls, own, functions, case)

    def retained(self, found: Iterable[tuple[Run, Evidence, Retained]]) -> Iterator[Case]:
        """Yield backward passes that keep their graph for nobody."""
        for run, evidence, one in found:
            if not one.needed:
                graphs = self.begun(run, evidence, one.sources)
                case = self.at(one.point, "TML105", one.doubts, graphs=graphs, creates=one.creates)
                if one.last is not None:
                    case = replace(case, loop=self.of(one.last), about=Again(None))
                yield case if one.outdated is None else self._again(case, one.outdated)

    def _again(self, case: Case, old: Outdated) -> Case:
        """Say what outdates the graph that a backward pass keeps."""
        loop, step = old.loop.site, self.of(old.step.chain()[0])
        around = self.of(loop) if isinstance(loop, Op) else None
        return replace(case, loop=around, graphs=self._graphs(old.begun), about=Again(step))

    def discarded(self, found: Iterable[tuple[Run, Evidence, Discarded]]) -> Iterator[Case]:
        """Yield backward passes that go on into networks whose gradients nobody uses."""
        told = set[Place]()
        for run, evidence, one in found:
            step, zeroed, alone = self.first(one.step), self.first(one.zeroed), self.first(one.alone)
            if not one.needed and step is not None and zeroed is not None and (alone is None or alone not in told):
                told |= {alone} if alone is not None else set()  # without gradients, it is no more to the others
                graphs = self.begun(run, evidence, one.makers)
                how = Discarding(step, zeroed, one.given, alone, one.spares)
                backward = self.first(one.backward)
                yield self.at(one.point, "TML107", one.doubts, graphs=graphs, backward=backward, about=how)

    def begun(self, run: Run, evidence: Evidence, sources: frozenset[Source]) -> tuple[Place, ...]:
        """Return where the graphs begin that sources have."""
        return self._graphs(self._begun(run, evidence, sources))

    def _graphs(self, begun: Iterable[Point]) -> tuple[Place, ...]:
        return tuple(dict.fromkeys(place for point in begun if (place := self._begin(point)) is not None))

    def _begin(self, point: Point) -> Place | None:
        """Return the call that begins a graph, or the network's method that does."""
        site = point.site
        return self.of_span(site.unit, site.span) if isinstance(site, Function) else self.first(point)

    def first(self, point: Point | None) -> Place | None:
        """Return where something happens, if that is known."""
        chain = point.chain() if point is not None else []
        return self.of(chain[0]) if chain else None

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
            if isinstance(begins, Graph | Result) and isinstance(begins.site, Op | Function):
                found.add(Point(begins.site, begins.context))
        return sorted(found, key=lambda point: [(op.owner.unit.name, op.span) for op in point.chain()])


def _forwards(engine: Engine, one: Pass) -> Iterator[Function]:
    for module in sorted(one.module, key=lambda module: module.serial):
        if type(module) is Object and module.kind is Kind.INSTANCE:
            forward = engine.index.method(module.about.cls, "forward")
            if forward is not None:
                yield forward
