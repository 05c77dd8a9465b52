"""Viewing: what a loop collects that is a view of something larger, whose whole storage it keeps.

An index that is a number, and slices, give a view: no element is copied, and the tensor that they are taken from stays
as long as the view does. A pass makes another such tensor in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.provenance import Numbers
from torchmemlint.flow.domain.refs import Bare, Graph, Point, Result, Source, root
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.closing import inferring
from torchmemlint.flow.fact.collecting import is_collection, on_device
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Return, Yield
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.places import SliceKey, Temp
from torchmemlint.flow.ir.reaching import reaching

_ROWS = frozenset({"list", "tuple", "set", "sorted"})  # of the items that they are given
_VIEWS = frozenset("detach view t transpose permute squeeze unsqueeze".split())  # nor does any of them copy


def viewed(places: Places, engine: Engine, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
    """Yield the views that loops collect, in some runs."""
    for run, evidence in done:
        kept = [keep for keep in run.effects(fx.Keep) if is_collection(keep)]
        taken = [(keep, view) for keep in kept if (view := _view(keep.point)) is not None]
        passes = {roles.head(engine, p.effect.point): p for p in inferring(run, evidence)} if taken else {}
        for keep, (stored, item) in taken:
            begun = _pass(engine, run, passes, keep)
            head = roles.head(engine, begun.effect.point) if begun is not None else ()
            if head and not _is_kept_whole(engine, run, kept, keep, head):
                device = on_device(run, evidence, keep) or _moved(run, keep)
                calls = tuple(map(places.of, keep.point.chain()[1:]))
                loop = places.of(keep.loop.site) if isinstance(keep.loop.site, ops.Op) else None
                moves = (places.of(device.chain()[0]),) if device is not None else ()
                yield Case(
                    places.of(stored),
                    "TML114",
                    evidence.cut,
                    device is None,
                    loop=loop,
                    graphs=(places.of(head[0]),),
                    within=places.of(item),
                    calls=calls,
                    moves=moves,
                )


def _view(point: Point) -> tuple[ops.Op, ops.Op] | None:
    """Return what is stored there, by itself or in a row, and the index that makes it a view; None if it is none."""
    op = point.site
    match op:
        case ops.CallMethod(arguments=(argument,)):
            temp = argument.temp
        case ops.SetItem(src=src) | ops.Collect(src=src):
            temp = src
        case _:
            return None
    parts = list(_parts(op.owner, temp))
    views = [(part, item) for part in parts if (item := _index(*part)) is not None]
    if len(views) != 1:
        return None  # none, or several parts of one whole
    (function, part), item = views[0]
    flow, stored = definitions(function), definitions(function).made.get(part)
    whole = flow.path(item.base)
    if stored is None or (whole and whole in (flow.path(other) for owner, other in parts if owner is function)):
        return None
    return stored, item


def _parts(function: ops.Function, temp: Temp) -> Iterator[tuple[ops.Function, Temp]]:
    """Yield what a value consists of, with the function that makes it: the items of a row, in whichever way it is made.

    That is written out, a comprehension, a generator, or what `map` makes with a function that is written there.
    """
    match made := _made(function, temp):
        case ops.Make(dst=box, entries=entries):
            yield from ((function, entry.temp) for entry in entries)
            taking = definitions(function).taken.get(box, ())
            yield from ((function, op.src) for op in taking if isinstance(op, ops.Collect) and op.box == box)
        case ops.Call(callee=callee, arguments=(first, *_)):
            known = definitions(function)
            name, defined = known.name(callee), known.made.get(callee)
            if name in _ROWS:
                yield from _parts(function, first.temp)
            elif isinstance(defined, ops.Define) and defined.function.generator:
                yield from _given(defined.function)
            elif name == "map" and isinstance(by := known.made.get(first.temp), ops.Define):
                yield from _given(by.function)
            else:
                yield function, temp
        case _ if made is not None:
            yield function, temp


def _given(function: ops.Function) -> Iterator[tuple[ops.Function, Temp]]:
    """Yield what a lambda returns, or what a generator expression yields."""
    for op in operations(function.body):
        if isinstance(op, Return | Yield):
            yield function, op.src


def _made(function: ops.Function, temp: Temp) -> ops.Op | None:
    """Return what makes a value, also if it has had a name meanwhile."""
    op = definitions(function).made.get(temp)
    named = reaching(function).only(op)
    return _made(function, named.src) if isinstance(named, ops.Bind) else op


def _index(function: ops.Function, temp: Temp) -> ops.GetItem | None:
    """Return the index by which a view is taken of something."""
    op = _made(function, temp)
    match op:
        case ops.CallMethod(name=name, base=base) if name in _VIEWS:
            return _index(function, base)
        case ops.GetItem(key=SliceKey(layout=layout)) if "0" in layout and not set(layout) - set(":.0+"):
            return op
    return None


def _pass(engine: Engine, run: Run, passes: dict[tuple[ops.Op, ...], Event], keep: fx.Keep) -> Event | None:
    """Return the pass of this iteration that gives what something is a view of."""
    sources = run.provenance.ancestors(keep.events, numbers=Numbers.COPIED)
    found = (passes.get(_head(engine, source)) for source in sources)
    return next((one for one in found if one is not None and keep.loop in one.loops), None)


def _moved(run: Run, keep: fx.Keep) -> Point | None:
    """Return what is brought to a device in the loop, if that is known to be none of the host."""
    moves = (move for event, move in run.met(fx.Move) if keep.loop in event.loops and not move.to_host)
    return next((move.point for move in moves if not move.device.refs), None)


def _head(engine: Engine, source: Source) -> tuple[ops.Op, ...]:
    """Return the calls that lead to where a tensor comes from, without what happens within a network."""
    begun = root(source)
    return roles.head(engine, Point(begun.site, begun.context)) if isinstance(begun, Bare | Result | Graph) else ()


def _is_kept_whole(engine: Engine, run: Run, kept: list[fx.Keep], keep: fx.Keep, head: tuple[ops.Op, ...]) -> bool:
    """Does something else keep what the pass gave, or parts of it?"""
    for other in kept:
        if other.point.site is not keep.point.site and other.loop is keep.loop:
            sources = run.provenance.ancestors(other.events, numbers=Numbers.COPIED)
            if any(_head(engine, source) == head for source in sources):
                return True
    return False
