"""Outputs: what a program keeps of every request as a whole, with the tensors of each step, though it reads little."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.manners import Stored
from torchmemlint.flow.domain.provenance import Numbers
from torchmemlint.flow.domain.refs import Bare, Phi, Point, Site, Slot, root
from torchmemlint.flow.fact.collecting import is_collection
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.fact.services import passes_of
from torchmemlint.flow.ir.blocks import is_inside, layout_of, operations
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import CallMethod, Function, GetAttribute, Load, Op, SetItem
from torchmemlint.flow.ir.places import NO_TEMP
from torchmemlint.flow.names.index import Index


def kept_whole(places: Places, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
    """Yield where objects with the tensors of each step pile up whose tensors nothing reads afterwards."""
    for run, evidence in done:
        short = {event.effect.loop.site for event in run.repeats if event.effect.bounded}
        loops: set[Site] | None = None
        for keep in run.effects(fx.Keep):
            if not is_collection(keep) or keep.stored is not Stored.HOLDER or not keep.point.chain():
                continue
            if loops is None:
                passes = passes_of(run, evidence)
                loops = {e.loop.site for event in passes for e in event.around if isinstance(e, fx.Repeat)} - short
            whole = _generated(evidence.index, keep)
            steps = _steps(keep, loops) if whole is None else None
            returned = run.provenance.ancestors(run.returned, numbers=Numbers.ALL)
            if (steps is None and whole is None) or keep.phi in returned or evidence.is_read(keep.phi):
                continue
            holder, site = keep.place[0], keep.loop.site
            is_seen = holder is None or holder in run.lasting() or holder in run.given()
            doubts = evidence.cut | ({Doubt.WANTED} if is_seen or _may_be_read(keep) else set())
            around = places.of(site) if isinstance(site, Op) else None
            graphs = (places.of(steps),) if steps is not None else ()
            moves = (places.of(whole),) if whole is not None else ()
            yield places.at(keep.point, "TML512", doubts, loop=around, graphs=graphs, moves=moves)


def _generated(index: Index, keep: fx.Keep) -> Op | None:
    """Return the call of a library that has given an object with tensors of each step, which is kept."""
    names = index.contracts.names("generates")
    sites = (s.site for s in sorted(map(root, keep.sources), key=lambda source: source.serial) if type(s) is Bare)
    return next((op for op in sites if isinstance(op, CallMethod) and names.has_method(op.name)), None)


def _may_be_read(keep: fx.Keep) -> bool:
    """Does another function of the file name both what keeps the objects and what holds the tensors in them?"""
    op = keep.point.chain()[0]
    base = op.base if isinstance(op, CallMethod | SetItem) else NO_TEMP
    name = definitions(op.owner).path(base).rpartition(".")[2]
    parts = {str(s.key) for s in keep.sources if type(s) is Slot}
    others = [_loaded(function) for function in op.owner.unit.functions if function is not op.owner]
    return not name or any(name in loaded and not parts.isdisjoint(loaded) for loaded in others)


def _loaded(function: Function) -> set[str]:
    """Return the names and attributes that a function reads, its generator expressions with it."""
    bodies = (one.body for one in (function, *(inner for inner in function.nested if inner.generator)))
    found = (op.name if isinstance(op, GetAttribute) else op for body in bodies for op in operations(body))
    return {one.name.text if isinstance(one, Load) else one for one in found if isinstance(one, Load | str)}


def _steps(keep: fx.Keep, loops: Container[Site]) -> Op | None:
    """Return the loop, of those that run a pass, whose steps made what an object holds, and that was over by then.

    A single tensor is none of each step, be it made in a loop.
    """
    made = [root(s) for s in sorted(keep.sources, key=lambda source: source.serial)]
    bare = [s for s in made if type(s) is Bare and not s.host]
    inner = {s: loop for s in bare if (loop := _loop_of(keep, s)) is not None and loop in loops}
    lists = any(type(s) is Phi and s.holder is not None and s.loop is not keep.loop for s in keep.sources)
    return next(iter(inner.values())) if inner and (lists or len(inner) > 1) else None


def _loop_of(keep: fx.Keep, made: Bare) -> Op | None:
    """Return the loop that made something, if it was over when that was kept."""
    sites = (keep.loop.site, *keep.point.chain())
    loops = (loop for op in Point(made.site, made.context).chain() for loop in layout_of(op.owner).loops(op))
    return next((loop for loop in loops if loop is not keep.loop.site and not is_inside(sites, loop)), None)
