"""Placing: tensors that are put on an accelerator while data is loaded, where a worker runs that or may come to.

What a loader calls is run as it calls it: the methods that make the items of its data set, on the data set that it was
given, and the functions that it was handed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import State, reachable
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Globals, Object, Point
from torchmemlint.flow.domain.values import NOTHING, UNKNOWN, Value
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import lives
from torchmemlint.flow.fact.conditions import is_about_data, is_met
from torchmemlint.flow.fact.details import Built, Placing
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.loaders import Loader
from torchmemlint.flow.fact.logs import Met, logged
from torchmemlint.flow.fact.moving import goes_to_accelerator, reached
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.fact.samples import SAMPLING, is_iterable, is_map_style, sampling
from torchmemlint.flow.ir.ops import Class, Function, Op, Unit
from torchmemlint.flow.models.hooks import functions
from torchmemlint.immutable import immutable

_PLACING = frozenset({"cuda", "device", "to"})
_ASKING = "get_worker_info"
_HANDED = ("collate_fn", "worker_init_fn")


Call = Callable[[Frame, State], Value]


@immutable()
class Placed:
    """A tensor that is put on an accelerator by what loaders call."""

    at: Op  # in the file of that
    calls: tuple[Op, ...]  # that led there, innermost first
    entry: Function
    doubts: frozenset[Doubt]
    loader: Loader | None = None  # whose workers call it
    single: bool = False  # by one that has no workers, and copies no more than one item at a time


def placing(engine: Engine, units: Iterable[Unit], built: Iterable[Loader]) -> Iterator[Placed]:
    """Yield what loaders put on an accelerator: those that are built, and any that load from the data sets of files."""
    seen: set[Class] = set()
    for loader in built:
        state, by = loader.run.state, loader if loader.has_workers else None
        for data in loader.datasets():
            cls: Class = data.about.cls
            seen.update(engine.index.order(cls))
            held = [f for r in reachable(state, [data]) for f in functions(loader.run.state, Value(r.alone))]
            for method in _making(engine, cls):
                if by is not None or method.name in SAMPLING:
                    for one in _placed(engine, method, state, _asking(engine, cls, method, data), held):
                        yield replace(one, loader=by, single=_is_single(loader))
        for handed in (loader.given.get(name) for name in _HANDED if by is not None):
            for entry in functions(loader.run.state, handed):
                for one in _placed(engine, entry, state, _calling(engine, entry, handed)):
                    yield replace(one, loader=by)
    for cls in (cls for unit in units for cls in unit.classes if cls not in seen and is_map_style(engine, cls)):
        for method in (cls.methods[name] for name in SAMPLING if name in cls.methods):
            if _may_place(method) and not engine.is_finished():
                state = engine.run_program(cls.unit)[1].copy()
                for made in engine.unseen_instance(state, cls, method).refs:
                    if type(made) is Object and made.kind is Kind.INSTANCE:
                        yield from _placed(engine, method, state, _asking(engine, cls, method, made))


def spared(placed: Iterable[Placed]) -> set[Op]:
    """Return what is put there for loaders alone that have no workers and copy no more than one item at a time."""
    found = list(placed)
    return {one.at for one in found if one.single} - {one.at for one in found if not one.single}


def _is_single(loader: Loader) -> bool:
    """Has it no workers, and is an item all that it copies at a time?"""
    workers, size = loader.workers, loader.number("batch_size", 1)
    none = workers is not None and workers.value == 0
    return none and loader.argument("batch_sampler") is None and (size is None or size.value == 1)


def _making(engine: Engine, cls: Class) -> list[Function]:
    """Return the methods by which a data set makes its items."""
    if not is_iterable(engine.index, cls):
        return sampling(engine, cls)
    stream = engine.index.method(cls, "__iter__")
    return [] if stream is None else [stream]


def _may_place(entry: Function, held: Iterable[Function] = ()) -> bool:
    """Does a function, one that it calls or is handed, speak of devices, and not of what it does in a worker?"""
    speaking = (not f.mentions.isdisjoint(_PLACING) for f in reached([entry, *held]))
    return _ASKING not in entry.mentions and any(speaking)


def _asking(engine: Engine, cls: Class, method: Function, data: Object) -> Call:
    """Return what asks a data set for items."""
    return lambda frame, state: lives.perform(engine, frame, state, cls, method, data)


def _calling(engine: Engine, entry: Function, handed: Value | None) -> Call:
    """Return what calls a function that a loader was handed."""
    callee, point = handed or NOTHING, Point(entry)
    return lambda frame, state: engine.call(frame, state, callee, Arguments([UNKNOWN]), point)


def _placed(
    engine: Engine, entry: Function, before: State, call: Call, held: Iterable[Function] = ()
) -> Iterator[Placed]:
    """Yield what is put on an accelerator each time that a function is called: the first thing of each function.

    `held` are functions that the object has which it is called with, as a data set has its transforms.
    """
    if not _may_place(entry, held):
        return
    frame, state, returned = Frame(entry, engine, Globals.of(entry.unit.name), entry=True), before.copy(), NOTHING
    state.dead = False
    with engine.share(frame):
        returned = call(frame, state)
    run = logged(frame, state, returned)
    moves = [event.effect for event in run.of(fx.Move) if _is_placing(event)]
    if not moves:
        return
    evidence, found = Evidence(engine, run), dict[Function, Placed]()
    for move in moves:
        sites = move.point.chain()
        own = next((number for number, site in enumerate(sites) if site.owner.unit is entry.unit), None)
        if own is not None and not any(map(evidence.is_network, move.of.refs)):  # which is moved as a whole
            at, *calls = sites[own:]
            found.setdefault(at.owner.definition, Placed(at, tuple(calls), entry, evidence.cut))
    yield from found.values()


def _is_placing(event: Met[fx.Move]) -> bool:
    """Does something come to lie on an accelerator, on whatever the program is asked to do, and in workers as well?"""
    move = event.effect
    if move.to_host or not goes_to_accelerator(move.device):
        return False
    if any(_ASKING in site.owner.mentions for site in move.point.chain()):
        return False
    tests = (effect for effect in event.around if isinstance(effect, fx.Fork))
    return all(is_met(test, event.branches[test]) or is_about_data(test) for test in tests)


def built_loaders(places: Places, loaders: Iterable[Loader]) -> Iterator[Built]:
    """Yield the loaders that are built, with the constants that they are given."""
    for one in loaders:
        given = {name: one.constant(name) for name in one.given}
        yield Built(places.of(one.point.chain()[0]), one.name, given, one.more)


def placed_cases(places: Places, found: Iterable[Placed]) -> Iterator[Case]:
    """Yield what is put on an accelerator while data is loaded."""
    for one in found:
        cls, name = one.entry.cls, one.entry.name
        entry = f"{cls.name}.{name}" if cls is not None else "" if name == "<lambda>" else name
        loader = places.first(one.loader.point) if one.loader is not None else None
        calls = tuple(map(places.of, one.calls))
        yield Case(
            places.of(one.at),
            "TML406",
            one.doubts,
            advice=loader is None,
            calls=calls,
            about=Placing(entry, loader),
        )
