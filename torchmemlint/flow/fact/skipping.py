"""Skipping: batches that a `continue` leaves out while variables still hold their graphs, which no backward has freed.

The next forward then runs beside all activations of the batch that was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.doubts import Doubt, confidence, rank
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.refs import Graph, Phi, Source
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.clauses import clauses
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.lingering import first_use
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.owners import Skipped
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.fact.sequence import Sequence
from torchmemlint.flow.fact.services import innermost
from torchmemlint.flow.ir.blocks import layout_of, operations
from torchmemlint.flow.ir.control import Continue, For, If, Try, While
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Bind, Compare, Load, Op, Unbind


def skipped(places: Places, engine: Engine, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
    """Yield where batches are left out, in some runs."""
    for run, evidence in done:
        held = [(event, hold) for event, hold in run.met(fx.Hold) if type(hold.point.site) is Continue]
        if held:
            reader = _Reader(engine, run, evidence)
            yield from filter(None, (reader.case(places, event, hold) for event, hold in held))


class _Reader:
    """One run."""

    def __init__(self, engine: Engine, run: Run, evidence: Evidence) -> None:
        self._engine, self._run, self._evidence = engine, run, evidence
        self._sequence = Sequence(run)

    def case(self, places: Places, event: Event, hold: fx.Hold) -> Case | None:
        """Return what a `continue` leaves behind; None if that is nothing, or gone before the next forward."""
        repeat, op = innermost(self._engine, event), hold.point.site
        assert isinstance(op, Op)
        loop = repeat.loop.site if repeat is not None else None
        if repeat is None or not isinstance(loop, For | While) or op.owner is not loop.owner:
            return None
        caught = _handler(op)
        if caught is not None and not any(op in c.out_of_memory for c in clauses(self._engine.index, op.owner)):
            return None
        held, tested = dict(hold.held), _tested(op)
        if (
            caught is None
        ):  # what comes round is differentiated with it; where it failed, it may not have been bound yet
            carried = frozenset[Source]().union(*(s for s in held.values() if any(type(one) is Phi for one in s)))
            held = {name: sources for name, sources in held.items() if sources.isdisjoint(carried)}
        for differentiated, backward in self._run.met(fx.Differentiate):
            if innermost(self._engine, differentiated) is not repeat or not backward.point.chain():
                continue
            if caught is None and not self._sequence.is_after(differentiated, event):
                continue
            above = self._run.provenance.ancestors(backward.sources)
            mine = {n: s for n, s in held.items() if n not in tested and self._is_of(s, above, event, loop, n)}
            found = {n: doubts for n, s in mine.items() if (doubts := self._evidence.best(s)) is not None}
            if found:
                surest = min(found.values(), key=rank)
                if Doubt.PART in surest and _lets_go(op):
                    return None
                names = {n: mine[n] for n, doubts in found.items() if confidence(doubts) is confidence(surest)}
                return self._found(places, hold, names, backward, loop, caught, surest)
        return None

    def _is_of(
        self, sources: frozenset[Source], above: set[Source], event: Event, loop: For | While, name: str
    ) -> bool:
        """Does a variable hold a part of what is differentiated, beyond the pass that comes next?"""
        found = self._run.provenance.ancestors(sources, event.loops)
        return any(self._is_pass(s) and self._is_bound_after(s, loop, name) for s in found & above)

    def _is_pass(self, source: Source) -> bool:
        """Is it the pass of a network, and not only a call that may have run one?"""
        evidence = self._evidence
        handled = evidence.training | evidence.evaluating | evidence.movable | evidence.owned
        callees = evidence.callees.get(source, set())
        return type(source) is Graph or any(c in handled or evidence.is_known(c) for c in callees)

    def _is_bound_after(self, source: Source, loop: For | While, name: str) -> bool:
        """Does the pass run before the variable is bound anew?"""
        point = getattr(source, "site", None), getattr(source, "context", ())
        call = next((op for op in (point[0], *point[1]) if isinstance(op, Op) and op.owner is loop.owner), None)
        inside = list(operations([loop]))
        if call is None or call not in inside:
            return False
        before = inside[: inside.index(call)]
        return not any(isinstance(op, Bind | Unbind) and op.name.text == name for op in before)

    def _found(
        self,
        places: Places,
        hold: fx.Hold,
        names: dict[str, frozenset[Source]],
        backward: fx.Differentiate,
        loop: For | While,
        caught: Try | None,
        doubts: frozenset[Doubt],
    ) -> Case:
        op = hold.point.site
        assert isinstance(op, Op)
        begun = places.begun(self._run, self._evidence, frozenset().union(*names.values()))
        bound = caught is None and all(_is_bound(loop, op, name) and not _is_read(loop, name) for name in names)
        return places.at(
            hold.point,
            "TML113",
            doubts | self._evidence.cut,
            loop=places.of(loop),
            graphs=begun,
            backward=places.first(backward.point),
            about=Skipped(tuple(sorted(names)), caught is not None, bound),
        )


def _handler(op: Op) -> Try | None:
    """Return the `try` in whose clause something stands."""
    for around, block in layout_of(op.owner).above(op):
        if isinstance(around, Try) and any(block is handler.body for handler in around.handlers):
            return around
        if isinstance(around, For | While):
            return None
    return None


def _tested(op: Op) -> set[str]:
    """Return the variables that are empty, or nothing, by the test that something stands under: `if not found:`."""
    made = definitions(op.owner).made
    tests = (made.get(around.test) for around, block in layout_of(op.owner).above(op) if isinstance(around, If))
    tested = (made.get(one.operands[0]) for one in tests if isinstance(one, Compare) and one.operator == "not")
    return {one.name.text for one in tested if isinstance(one, Load)}


def _lets_go(op: Op) -> bool:
    """Are variables deleted right before an iteration ends? What stays of a result is then a part without a graph."""
    _, block = next(iter(layout_of(op.owner).above(op)))
    return any(type(one) is Unbind for one in block)


def _is_bound(loop: For | While, at: Op, name: str) -> bool:
    """Is a variable bound on every way through an iteration to where that ends early?"""
    order = layout_of(loop.owner).order
    binds = (op for op in loop.body if isinstance(op, Bind) and op.name.text == name)
    return any(order[op] < order[at] for op in binds)


def _is_read(loop: For | While, name: str) -> bool:
    """Is a variable read before an iteration binds it, or after the loop?"""
    around = list(operations(loop.owner.body))
    start, count = around.index(loop), len(list(operations([loop])))
    inside, after = around[start : start + count], around[start + count :]
    return any(isinstance(first_use(ops, name), Load) for ops in (inside, after))
