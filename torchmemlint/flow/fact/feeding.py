"""Feeding: loaders that take more memory, or more time beside what is held in it, than they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import visible
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Counted, Object, Point, Ref
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.contents import Contents
from torchmemlint.flow.fact.gains import has_short_epochs, has_small_batches
from torchmemlint.flow.fact.idling import idle
from torchmemlint.flow.fact.layers import Builders
from torchmemlint.flow.fact.loaders import Loader, Number, data, loaders, repeated
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.moving import Moved, batches_of_its_own, makes_on_device, may_be_encoded, moving
from torchmemlint.flow.fact.records import Kept, kept
from torchmemlint.flow.fact.samples import SAMPLING, is_iterable
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.ops import Class, Function, Op, SetAttribute
from torchmemlint.immutable import immutable

MANY = 64  # as many logical CPUs as a machine with one or two sockets has, and no more are its own in a shared one
_SEVERAL = 2  # workers
_PREFETCHED = 2  # batches that each worker keeps ready, unless `prefetch_factor` says otherwise
_OTHERS = frozenset({"jax", "flax", "haiku", "optax", "equinox", "tensorflow", "keras"})
_COMPUTING = frozenset({"backward", "cuda", "nn", "no_grad", "zero_grad"})  # with torch
_DISTRIBUTED = frozenset({"init_process_group", "DistributedDataParallel", "DistributedSampler"})
# Methods that tell a data set something: its copies in persistent workers would not hear of it.
_TELLING = ("set_", "update", "shuffle", "resample", "add_", "next_", "on_epoch", "reset", "refresh", "reload", "build",
            "generate", "step", "append", "insert", "remove", "select", "prepare", "new_", "load")  # fmt: skip


@immutable()
class Fed:
    """A loader of which a rule speaks."""

    code: str
    loader: Loader
    workers: Number | None = None
    counted: Op | None = None  # where the CPUs are counted
    ahead: int | None = None  # batches that are kept ready
    ranks: bool = False  # is there one in each process of a distributed program?
    iterated: Point | None = None
    again: Op | None = None  # the loop that repeats that
    moved: Point | None = None  # where its batches are brought to an accelerator
    beside: tuple[Point, ...] = ()  # and other parts of these
    otherwise: bool = False  # there are workers, or may be
    copied: tuple[Class, Kept] | None = None  # the data set, and what each worker comes to own a copy of
    doubts: frozenset[Doubt] = frozenset()


def feeding(engine: Engine, builders: Builders, seen: list[Run], known: Mapping[Object, Loader]) -> Iterator[Fed]:
    """Yield what rules say of the loaders that are built in some runs."""
    known = {made: loader for made, loader in known.items() if not _feeds_others(loader)}
    moved = [move for run in seen for move in moving(run, known)]
    moves: dict[Op, list[Moved]] = {}
    for move in moved:
        moves.setdefault(move.point.chain()[0], []).append(move)
    waiting: dict[tuple[Object, Function], Fed] = {}  # the parts of a batch are changed together
    for site, some in sorted(moves.items(), key=lambda found: found[0].span):
        for one in _waiting(site, some):
            first = waiting.setdefault((one.loader.made, site.owner), one)
            if first is not one and one.moved is not None:
                beside, doubts = (*first.beside, one.moved), first.doubts & one.doubts
                waiting[one.loader.made, site.owner] = replace(first, beside=beside, doubts=doubts)
    yield from waiting.values()
    for loader, otherwise in idle(engine, seen, (one for run in seen for one in loaders(engine, run))):
        if _feeds_others(loader):
            continue
        chosen = loader.workers is not None and loader.workers.chosen  # an option's default is somebody's decision
        yield Fed("TML401", loader, loader.workers, otherwise=otherwise, doubts=_of_worth(not chosen))
    copied: set[tuple[Class, bool]] = set()
    for loader in known.values():
        own = [move for move in moved if move.loader.made is loader.made]
        if _ought_to_pin(loader, own):  # the batches lie in pageable memory
            yield Fed("TML402", loader, moved=own[0].point, doubts=_of_worth(not has_small_batches(loader)))
        workers = loader.workers
        if workers is not None:
            yield from _crowd(loader, workers)
            yield from _restarted(engine, loader, seen, workers)
            yield from _copying(builders, loader, workers, copied)


def _feeds_others(loader: Loader) -> bool:
    """Is it built in a file of JAX or TensorFlow, which takes no more of torch than how to load?"""
    module = loader.point.chain()[0].owner.unit.module
    imported = {qualified.split(".")[0] for qualified in module.unit.imports.values()}
    return not imported.isdisjoint(_OTHERS) and module.mentions.isdisjoint(_COMPUTING)


def _ought_to_pin(loader: Loader, moved: list[Moved]) -> bool:
    if loader.more or "pin_memory" in loader.given or all(move.once for move in moved):
        return False
    if loader.number("num_workers", 0) == Number(0) or makes_on_device(loader):
        return False  # the loop itself would pin and wait for that, or what lies on the device cannot be pinned
    return not (batches_of_its_own(loader) and any(move.whole for move in moved))


def _waiting(site: Op, moved: list[Moved]) -> Iterator[Fed]:
    """Does the program wait for the copy of a batch that is pinned, or ought to be?"""
    first = moved[0]
    if not all(move.waits for move in moved) or all(move.once or not move.delays for move in moved):
        return
    if any(batches_of_its_own(m.loader) and (m.whole or may_be_encoded(site)) for m in moved):
        return
    if all(m.loader.flag("pin_memory", False) or _ought_to_pin(m.loader, [m]) for m in moved):
        pins = any(m.loader.flag("pin_memory", False) for m in moved)  # else that is said of the loader
        worth = pins and not has_small_batches(first.loader)
        yield Fed("TML403", first.loader, moved=first.point, doubts=_of_worth(worth))


def _of_worth(worth: bool) -> frozenset[Doubt]:
    return frozenset(() if worth else {Doubt.SIZE})


def _crowd(loader: Loader, workers: Number) -> Iterator[Fed]:
    """Are there more workers than there are CPUs for them?"""
    counted, ahead = None, None
    if isinstance(workers.value, Counted):
        counted = workers.value.site if isinstance(workers.value.site, Op) else None
    elif workers.value < MANY:
        return
    else:
        factor = loader.number("prefetch_factor", _PREFETCHED)
        if factor is not None and isinstance(factor.value, int):
            ahead = workers.value * factor.value
    unit = loader.point.chain()[0].owner.unit
    ranks = any(not function.mentions.isdisjoint(_DISTRIBUTED) for function in unit.functions)
    yield Fed("TML407", loader, workers, counted, ahead, ranks)


def _restarted(engine: Engine, loader: Loader, runs: list[Run], workers: Number) -> Iterator[Fed]:
    """Are the workers started again at every pass?"""
    if workers.value in (0, 1) or loader.more or "persistent_workers" in loader.given:
        return  # one starts fast
    if loader.name.startswith("torch_geometric."):
        return  # graph libraries keep their data in memory, and have loaders of their own
    found = next(filter(None, (repeated(loader, run) for run in runs)), None)
    if found is not None and not any(_is_changed(engine, loader, runs, one) for one in data(loader)):
        doubts = _of_worth(has_short_epochs(loader, found.again))
        yield Fed("TML404", loader, workers, iterated=found.at, again=found.again, doubts=doubts)


def _copying(builders: Builders, loader: Loader, workers: Number, seen: set[tuple[Class, bool]]) -> Iterator[Fed]:
    """Does each worker come to own a copy of Python objects? In order, each reads its own share of the pages."""
    if loader.in_order or (isinstance(workers.value, int) and workers.value < _SEVERAL):
        return
    is_doubtful = loader.in_order is None
    for cls in (made.about.cls for made in loader.datasets()):
        if seen.isdisjoint({(cls, False), (cls, is_doubtful)}) and not is_iterable(builders.index, cls):
            seen.add((cls, is_doubtful))
            found = kept(Contents(builders, cls), SAMPLING)
            if found is not None:
                doubts = frozenset({Doubt.ORDER} if is_doubtful else ())
                yield Fed("TML405", loader, workers, copied=(cls, found), doubts=doubts)


def _is_changed(engine: Engine, loader: Loader, runs: list[Run], data: Ref) -> bool:
    """Is a data set told anything, or given an attribute, by others than itself?"""
    if any(data in one.receiver.refs and _tells(one.name) for run in runs for one in run.effects(fx.InvokeMethod)):
        return True
    if any(one.holder is data for run in runs for one in run.effects(fx.Write)):
        return True
    if type(data) is not Object or data.kind is not Kind.INSTANCE:
        return type(data) is Object and any(True for run in runs for _ in visible(run.state.heap.edges(data)))
    own = engine.index.order(data.about.cls)
    methods = {method for cls in own for method in cls.methods.values()}
    read = set().union(*(method.mentions for method in methods))
    told = set(filter(_tells, (method.name for method in methods)))
    functions = {*loader.point.chain()[0].owner.unit.functions, *(run.entry for run in runs)} - methods
    return any(not f.mentions.isdisjoint(told) or _assigns(f, read) for f in functions)


def _tells(method: str) -> bool:
    return method.startswith(_TELLING)


def _assigns(function: Function, attributes: set[str]) -> bool:
    """Does a function that is no method assign one of some attributes?"""
    if function.mentions.isdisjoint(attributes) or (function.cls is not None and function.parameters):
        return False
    return any(type(op) is SetAttribute and op.name in attributes for op in operations(function.body))
