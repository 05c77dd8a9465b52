"""Samples: what data sets keep of the samples that they are asked for.

The method that makes a sample is run again and again, with another index each time. What is put into a container that
the next time still finds, under the index or by a decorator that remembers results, is there until the process ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain.frame import Frame, Written
from torchmemlint.flow.domain.heap import Mode, State, elements, reachable, visible
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.memory import renew_keys
from torchmemlint.flow.domain.refs import Code, Globals, Input, Key, Loop, Object, Ref, root
from torchmemlint.flow.domain.values import NOTHING, Value
from torchmemlint.flow.engine import caches
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import lives
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.loaders import Loader, loaders
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import fills, layout_of, operations
from torchmemlint.flow.ir.control import If
from torchmemlint.flow.ir.defuse import DefUse, definitions
from torchmemlint.flow.ir.places import Temp
from torchmemlint.flow.names.index import Index
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import data_sets

SAMPLING = ("__getitem__", "__getitems__")
_MAP_STYLE = frozenset({"Dataset", "MapDataPipe", "VisionDataset", "InMemoryDataset"})
_ALL_MAP_STYLE = ("torchvision.datasets.", "torchaudio.datasets.")
_SOME_MAP_STYLE = ("torch.utils.data.", *_ALL_MAP_STYLE, "torch_geometric.data.")


@immutable()
class Memoised:
    """A data set that keeps its samples."""

    cls: ops.Class
    at: ops.Op | None  # what stores them
    decorator: ops.Decorator | None  # or it, on the method that makes them
    method: ops.Function
    attribute: str = ""  # that holds them
    made: ops.Op | None = None  # where that is made
    loader: Loader | None = None  # whose workers end before they could ask for a sample again


def memoised(engine: Engine, units: Iterable[ops.Unit], done: list[tuple[Run, Evidence]]) -> Iterator[Memoised]:
    """Yield what keeps samples: of the data sets of all loaders that are made, and of those of some files."""
    seen: set[ops.Class] = set()
    for run, _ in done:
        for loader in loaders(engine, run):
            lost = loader if loader.has_workers and loader.ends_workers and loader.asks_once else None
            for made in loader.datasets():
                cls: ops.Class = made.about.cls
                if not is_iterable(engine.index, cls) and any(map(may_memoise, sampling(engine, cls))):
                    seen.add(cls)
                    yield from _kept(engine, made, run.state, lost)
    for cls in (cls for unit in units for cls in unit.classes if cls not in seen):
        own = [cls.methods[name] for name in SAMPLING if name in cls.methods]
        if any(f.decorators for f in own) and is_map_style(engine, cls) and not engine.is_finished():
            state = engine.run_program(cls.unit)[1].copy()
            for one in engine.unseen_instance(state, cls, own[0]).refs:
                if type(one) is Object and one.kind is Kind.INSTANCE:
                    yield from _kept(engine, one, state, None)


def may_memoise(method: ops.Function) -> bool:
    """Has a method that makes samples a decorator, or does it put something under a key of an attribute?"""
    return bool(method.decorators) or fills(method.body)


def is_sampling(function: ops.Function) -> bool:
    """Does it make the samples of what may be a data set?"""
    return function.cls is not None and function.name in SAMPLING


def sampling(engine: Engine, cls: ops.Class) -> list[ops.Function]:
    """Return the methods by which a class makes the items that it is asked for."""
    found = (engine.index.method(cls, name) for name in SAMPLING)
    return [method for method in found if method is not None]


def is_iterable(index: Index, cls: ops.Class) -> bool:
    """Does a class derive from torch's iterable data set?"""
    return any(base.rpartition(".")[2] in data_sets.ITERABLE for base in index.libraries(cls))


def is_map_style(engine: Engine, cls: ops.Class) -> bool:
    """Does a class derive from a map-style data set of a library?"""
    bases = [base for base in engine.index.libraries(cls) if base.startswith(_SOME_MAP_STYLE)]
    named = any(base.rpartition(".")[2] in _MAP_STYLE or base.startswith(_ALL_MAP_STYLE) for base in bases)
    return named and not is_iterable(engine.index, cls)


def _kept(engine: Engine, made: Object, before: State, lost: Loader | None) -> Iterator[Memoised]:
    """Yield what keeps the samples of one data set: decorators, and where `lost` what it fills itself."""
    cls: ops.Class = made.about.cls
    for method in sampling(engine, cls):
        if not may_memoise(method):
            continue
        start = _with_file(engine, before, method.unit)
        frame, state, sample = _asked(engine, cls, method, made, start)
        life = Loop.of(cls, (method,))
        written = frame.writes.get(life, {})
        alive = reachable(state, [made, Globals.of(method.unit.name), *_closures(state, cls, method)])
        for (holder, key), notes in written.items():
            if holder is None or holder in frame.erased[life]:
                continue
            decorator = _keeping_decorator(method, holder, key, notes, alive, state, sample)
            if decorator is not None:
                yield Memoised(cls, _op(notes) if type(holder) is Object else None, decorator, method, loader=lost)
            elif lost is not None and type(holder) is Object and sum(one is holder for one, _ in written) == 1:
                attribute = _attribute(state, made, holder)
                if attribute and _fills(method, key, notes, attribute) and _is_empty(start, holder):
                    site = holder.site if isinstance(holder.site, ops.Op) else None
                    yield Memoised(cls, _op(notes), None, method, attribute, site, lost)


def _asked(
    engine: Engine, cls: ops.Class, method: ops.Function, made: Object, before: State
) -> tuple[Frame, State, Value]:
    """Ask for one sample after the other; nobody differentiates them."""
    frame, state = Frame(method, engine, Globals.of(method.unit.name), entry=True), before.copy()
    state.mode, state.dead = Mode.OFF, False
    given: list[Value] = []

    def ask(inside: State) -> None:
        for key in [key for key in frame.keys if type(root(key)) is Input]:
            renew_keys(frame, inside, key)
        given.append(lives.perform(engine, frame, inside, cls, method, made))

    with engine.share(frame):
        engine.run_loop(frame, state, Loop.of(cls, (method,)), ask)
    return frame, state, given[-1] if given else NOTHING


def _with_file(engine: Engine, state: State, unit: ops.Unit) -> State:
    """Return a state in which also is what a file has made when it was imported: its decorators' objects."""
    state = state.copy()
    for holder, edges in engine.end_of(unit).heap.table.items():
        if not state.heap.edges(holder):
            for key, value in edges.items():
                state.heap.put(holder, key, value)
    return state


def _closures(state: State, cls: ops.Class, method: ops.Function) -> Iterator[Ref]:
    """Yield what a method's decorators have left."""
    for holder, edges in state.heap.table.items():
        if getattr(holder, "cls", None) is method.cls and method.name in edges:
            for r in edges[method.name].refs:
                yield r.frame if type(r) is Code else r


def _op(notes: list[Written]) -> ops.Op | None:
    chain = notes[-1].point.chain()
    return chain[0] if chain else None


# Decorators.


def _keeping_decorator(
    method: ops.Function, holder: Ref, key: Key, notes: list[Written], alive: set[Ref], state: State, sample: Value
) -> ops.Decorator | None:
    """Return the decorator that puts all samples where they stay, if that is what is written to."""
    if type(holder) is Code and key is Special.CACHED:
        return next((d for d in method.decorators if caches.keeps_all(d)), None) if holder.function is method else None
    op = _op(notes)
    if type(holder) is not Object or holder not in alive or holder.kind not in (Kind.DICT, Kind.LIST) or op is None:
        return None
    owner = _outermost(op.owner)
    decorator = next((d for d in method.decorators if d.applied and d.name.rpartition(".")[2] == owner), None)
    if decorator is None or decorator.called or "len" in op.owner.mentions:  # who asks how long it is bounds it
        return None
    kept = elements(state, holder)
    return decorator if not (kept.refs | kept.graph).isdisjoint(sample.refs | sample.graph) else None


def _outermost(function: ops.Function) -> str:
    """Return the name of the function or class of a file in which a function stands."""
    while function.parent is not None and function.parent.parent is not None:
        function = function.parent
    return function.cls.name if function.cls is not None else function.name


# What a data set fills itself.


def _attribute(state: State, made: Object, holder: Ref) -> str:
    found = (key for key, value in state.heap.edges(made).items() if type(key) is str and holder in value.refs)
    return next(found, "")


def _fills(method: ops.Function, key: Key, notes: list[Written], attribute: str) -> bool:
    """Does a method put a sample under the index that it is asked for, where it looks for it, whatever else holds?"""
    parameters = method.parameters[1:2]
    if not parameters or key is not Input.of(method, parameters[0].name):
        return False
    op = _op(notes)
    if op is None or op.owner is not method or not isinstance(op, ops.SetItem):
        return False
    flow = definitions(method)
    looked_at = (_looked_at(one) for one in operations(method.body))
    if not any(_attribute_of(flow, temp) == attribute for temp in looked_at if temp is not None):
        return False
    tests = (one.test for one, _ in layout_of(method).above(op) if isinstance(one, If))
    return not any(_is_switch(flow, test, attribute) for test in tests)


def _looked_at(op: ops.Op) -> Temp | None:
    """Return the container that an operation looks something up in."""
    match op:
        case ops.GetItem(base=base) | ops.CallMethod(name="get" | "setdefault", base=base):
            return base
        case ops.Compare(operator="in" | "not in", operands=(_, container)):
            return container
    return None


def _attribute_of(flow: DefUse, temp: Temp) -> str:
    made = flow.made.get(temp)
    return made.name if isinstance(made, ops.GetAttribute) else ""


def _is_switch(flow: DefUse, test: Temp, attribute: str) -> bool:
    """Does a test ask another attribute, and not how full the cache is?"""
    asked = list(flow.behind(test))
    if any(isinstance(op, ops.Load) and op.name.text == "len" for op in asked):
        return False
    return any(isinstance(op, ops.GetAttribute) and op.name != attribute for op in asked)


def _is_empty(state: State, holder: Ref) -> bool:
    """Has a container nothing in it but, perhaps, places without anything?"""
    return all(value.known and value.constant is None for _, value in visible(state.heap.edges(holder)))
