"""Circling: objects that hold themselves, with a network, and are made again and again.

Nothing frees them when the last variable lets go of them: their memory waits for the garbage collector, which counts
objects and knows nothing of how much memory of a device hangs on them. Source: the documentation of Python's `gc`.
Measured: of 60 networks made in a loop, each in a cycle, 12 to 23 were in memory at once (3 to 150 layers, none to 100
training steps each; Python 3.11), so that one which is made again and again is doubted only for what has no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import ELEMENT, STORES, reachable
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Bare, Bound, Code, Key, Object, Point, Ref, Source
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.hooking import Hooks
from torchmemlint.flow.fact.logs import Event, Run, callee
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.owners import Circling, Hoarding
from torchmemlint.flow.fact.owning import constructs_network
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir.blocks import is_inside, layout_of
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import CallMethod, Op, SetAttribute, Super
from torchmemlint.flow.models.hooks import is_hook
from torchmemlint.flow.names.index import Index
from torchmemlint.knowledge import services


def circling(places: Places, engine: Engine, hooks: Hooks, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
    """Yield what holds itself, of some runs."""
    for run, evidence in done:
        held = {hoard.point.site for hoard in run.effects(fx.Hoard)}
        told: set[tuple[object, ...]] = set()  # a circle is one, whichever of its objects it is entered by
        for event, circle in sorted(run.met(fx.Circle), key=lambda met: len(met[1].point.chain())):
            loop = repeating(engine.index, event, circle.point)
            if loop is None or _collects(run, loop) or (_is_hooked(circle.way) and hooks.are_removed):
                continue
            heavy = [p for p in circle.networks if is_inside((p.site, *p.context), loop)]
            graphs = [s for s in circle.sources if _is_held(evidence, s)]
            same = (_turned(circle.way), frozenset(p.site for p in heavy))
            if (heavy or graphs) and same not in told and held.isdisjoint((circle.point.site, *same[1])):
                told.add(same)
                yield _case(places, engine, run, evidence, circle, loop, heavy)


def _case(
    places: Places, engine: Engine, run: Run, evidence: Evidence, circle: fx.Circle, loop: Op, heavy: list[Point]
) -> Case:
    closure = type(circle.way[0][0]) is Code
    made = dict.fromkeys(place for p in heavy if (place := places.first(p)) is not None)
    chain = circle.point.chain()
    about = Circling(_written(circle.way), closure)
    function = circle.point.site
    place = places.of(function) if isinstance(function, Op) else places.of_span(function.unit, function.span)
    return Case(
        place,
        "TML801",
        evidence.cut | (set() if heavy else {Doubt.COLLECTED}) | (set() if circle.sole else {Doubt.CHOICE}),
        loop=places.of(loop),
        graphs=tuple(made)[:1],
        calls=tuple(map(places.of, chain[0 if closure else 1 :])),
        moves=tuple(_closing(places, engine, run, circle.way)),
        about=about,
    )


def repeating(index: Index, event: Event, point: Point) -> Op | None:
    """Return the innermost loop that makes something again and again: one of those met, or around the calls.

    One in the constructor of a network makes its parts, which live as long as the network.
    """
    met = [loop.site for loop in event.loops if isinstance(loop.site, Op)]
    for op in point.chain():
        around = next(layout_of(op.owner).loops(op), None)
        if around is not None and not constructs_network(index, Point(around)):
            return around
    around_all = (site for site in met if is_inside(point.chain(), site))
    return next((site for site in around_all if not constructs_network(index, Point(site))), None)


def _turned(way: tuple[tuple[Ref, Key], ...]) -> tuple[str, ...]:
    """Return by what each holds the next, from the one on that comes first in order."""
    keys = [str(key) for _, key in way]
    return min(tuple(keys[n:] + keys[:n]) for n in range(len(keys)))


def _is_hooked(way: tuple[tuple[Ref, Key], ...]) -> bool:
    """Is a module on the way that holds the next by a hook?"""
    return any(is_hook(key) for _, key in way)


def _collects(run: Run, loop: Op) -> bool:
    """Does the loop have the garbage collected itself?"""
    calls = (serve.point for serve in run.effects(fx.Serve) if serve.name in services.COLLECT)
    return any(is_inside(point.chain(), loop) for point in calls)


def _is_held(evidence: Evidence, source: Source) -> bool:
    return type(source) is Bare or evidence.graph(source) is not None


def _written(way: tuple[tuple[Ref, Key], ...]) -> str:
    """Return a way as text."""
    text = begin = _name(way[0][0])
    for holder, key in way:
        if isinstance(holder, Bound):
            text += f" → {_name(holder)}"
        elif isinstance(holder, Code):
            text += f" → {_name(holder)}" if holder is not way[0][0] else ""
            text += f" → {key}" if holder is not way[-1][0] or not isinstance(way[0][0], Code) else ""
        elif isinstance(key, str) and not _is_box(holder):
            text += f".{key}"
        elif isinstance(key, str | int) and _is_box(holder):
            text += f"[{key!r}]"
        elif key is not Special.FUNCTION:
            text += "[…]" if key is ELEMENT or isinstance(key, Ref) else ""
    return f"{text} → {begin}"


def _is_box(holder: Ref) -> bool:
    return type(holder) is Object and holder.kind in STORES


def _name(reference: Ref) -> str:
    if isinstance(reference, Bound):
        return _name(reference.code)
    if isinstance(reference, Code):
        return f"{reference.function.name.strip('<>')}()"
    about = getattr(reference, "about", "")
    return about.cls.name if hasattr(about, "cls") else str(about).rpartition(".")[2]


def _closing(places: Places, engine: Engine, run: Run, way: tuple[tuple[Ref, Key], ...]) -> Iterator[Place]:
    """Yield where one is given the next: as an attribute, as a hook, or as a library's object is made with it."""
    for holder, key in way:
        if is_hook(key):
            sites = [hooked.point.site for hooked in run.effects(fx.Hooked) if hooked.owner is holder]
        elif type(holder) is Object and holder.kind is Kind.INSTANCE:
            methods = (m for cls in engine.index.order(holder.about.cls) for m in cls.methods.values())
            sites = [op for m in methods for op in m.body if _gives(op, key)]
        else:
            sites = [holder.site] if type(holder) is Object and holder.kind is Kind.OPAQUE else []
        yield from map(places.of, [site for site in sites if isinstance(site, Op)][:1])


def _gives(op: Op, key: Key) -> bool:
    """Is an object given something under a key: by setting an attribute, or by the constructor of its base class?"""
    if isinstance(op, CallMethod) and not isinstance(key, str):
        return op.name == "__init__" and isinstance(definitions(op.owner).made.get(op.base), Super)
    return isinstance(op, SetAttribute) and op.name == key


# Networks of earlier iterations that a container still holds, though nothing runs them any more.


def hoarding(places: Places, done: Iterable[tuple[Run, Evidence]]) -> Iterator[Case]:
    """Yield the networks that are made, and run, in a loop, and held by what nothing but the loop has to do with."""
    for run, evidence in done:
        told: set[Op] = set()
        hoards = list(run.met(fx.Hoard))
        uses = [(met, set(map(_point, refs))) for met, refs in _uses(run)] if hoards else []
        older = [r for _, refs in run.passes() for r in refs if type(r) is Object and r.older] if hoards else []
        again = set(map(_point, reachable(run.state, older)))
        for event, hoard in hoards:
            loop = repeating(evidence.index, event, hoard.point)
            networks = {p for p in hoard.networks if loop is not None and is_inside((p.site, *p.context), loop)}
            if loop is None or loop in told or not networks or hoard.variable == loop.owner.receiver:
                continue
            used = [met for met, points in uses if not networks.isdisjoint(points)]
            if not (used or any(map(_is_copied, networks))) or not networks.isdisjoint(again):
                continue
            if all(_is_within(met, loop) for met in used):
                told.add(loop)
                yield _hoarded(places, evidence, hoard, loop)


def _hoarded(places: Places, evidence: Evidence, hoard: fx.Hoard, loop: Op) -> Case:
    """Return a case where the loop makes the networks, by itself or by a call."""
    chain = hoard.point.chain()
    number = next((n for n, op in enumerate(chain) if op.owner is loop.owner), 0)
    place, *calls = map(places.of, chain[number:])
    made = tuple(dict.fromkeys(at for p in hoard.networks if (at := places.first(p)) is not None))[:1]
    is_seen = loop.owner.parent is None  # by other files, and by who sits in front of it
    about, doubts = Hoarding(hoard.variable), evidence.cut | {Doubt.LATER} | ({Doubt.WANTED} if is_seen else set())
    return Case(place, "TML807", doubts, loop=places.of(loop), graphs=made, calls=tuple(calls), about=about)


def _is_copied(made: Point) -> bool:
    """Is it a copy of a network? It has its weights, and need not be run to be worth something."""
    return isinstance(made.site, Op) and definitions(made.site.owner).called(made.site) == "copy.deepcopy"


def _point(reference: Ref) -> Point | None:
    return Point(reference.site, reference.context) if type(reference) is Object else None


def _is_within(event: Event, loop: Op) -> bool:
    return is_inside(event.effect.point.chain(), loop) or any(one.site is loop for one in event.loops)


def _uses(run: Run) -> Iterator[tuple[Event, Iterable[Ref]]]:
    """Yield where networks are run, stepped, or handed to what was not seen, which the caller of an entry is, too."""
    yield from ((met, reachable(run.state, refs)) for met, refs in run.passes())
    yield from ((met, reachable(run.state, step.holder.refs)) for met, step in run.met(fx.Step))
    yield from ((met, reachable(run.state, [use.reference])) for met, use in run.met(fx.Use))
    for met, call in run.calls():
        given = [r for value in call.arguments.all() for r in value.refs]
        yield met, reachable(run.state, [*given, *callee(call)])
    for met, serve in run.met(fx.Serve):
        yield met, reachable(run.state, [r for value in serve.arguments.all() for r in value.refs])
