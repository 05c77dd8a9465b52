"""Moving: batches that a program brings to an accelerator as a loader gave them, and how it makes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import ELEMENT, contained
from torchmemlint.flow.domain.refs import Behind, Choice, Object, Point, Ref, path, root
from torchmemlint.flow.domain.values import Value, beginnings
from torchmemlint.flow.fact.loaders import Loader
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.samples import SAMPLING
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import blocks, operations
from torchmemlint.flow.ir.control import For, If, Try
from torchmemlint.flow.ir.defuse import DefUse, definitions
from torchmemlint.flow.ir.ops import Function, Op
from torchmemlint.flow.ir.places import ConstantKey, SliceKey
from torchmemlint.flow.ir.reaching import reaching
from torchmemlint.flow.models.hooks import functions
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import torch_api
from torchmemlint.knowledge.services import ACCELERATORS

_READING = torch_api.READERS | {"cpu"}
_ENCODING = ("tokenizer", "processor")


@immutable(eq=False)
class Moved:
    """A batch, or a part of one, that is brought to an accelerator."""

    point: Point
    loader: Loader
    waits: bool  # could it be asked not to wait for the copy?
    whole: bool  # all of the batch at once: its class may be the collate function's own
    once: bool  # of one batch alone
    delays: bool  # does the program wait for the accelerator there, and not with every batch anyway?


def moving(run: Run, built: Mapping[Object, Loader]) -> Iterator[Moved]:
    """Yield where one run brings the batches of loaders to an accelerator."""
    for event, move in run.met(fx.Move) if built else ():
        given = {root(r): r for r in move.of.refs}
        if not move.as_given or not goes_to_accelerator(move.device) or _is_picked(move.point.site):
            continue
        for begin, batch in given.items():
            loader = built.get(begin) if type(begin) is Object else None
            if loader is not None and (sites := move.point.chain()):
                whole = type(batch) is Behind and batch.base is begin
                once = _is_once(run, event) or _is_first_batch(sites[0])
                yield Moved(move.point, loader, move.waits, whole, once, not _waits_anyway(run, event, loader))


def goes_to_accelerator(device: Value) -> bool:
    """Does a value name an accelerator, or one of a few devices of which one is?"""
    if any(text.startswith(ACCELERATORS) for text in beginnings(device)) or type(device.constant) is int:
        return True
    defaults = [r.default for r in device.refs if type(r) is Choice]
    return bool(defaults) and all(isinstance(one, str) and one.startswith(ACCELERATORS) for one in defaults)


def is_item(reference: Ref, whole: Ref) -> bool:
    """Is it an item of something, or a part of one?"""
    return any(part.base is whole and part.key is ELEMENT for part in path(reference))


def _is_picked(site: object) -> bool:
    """Is it elements of a tensor, picked by a list or another tensor? That makes a new one."""
    if type(site) is not ops.CallMethod:
        return False
    flow = definitions(site.owner)
    made = flow.made.get(site.base)
    if type(made) is not ops.GetItem or type(made.key) is not SliceKey:
        return False
    return any(type(flow.made.get(part)) not in (ops.Constant, None) for part in made.key.parts)


def _is_once(run: Run, event: Event) -> bool:
    """Is the loop around it left with its first round, or does the program do it outside of loops?"""
    loops = [e.loop.site for e in event.around if isinstance(e, fx.Repeat)]
    return not loops or is_left_at_once(loops[-1])


def _waits_anyway(run: Run, event: Event, loader: Loader) -> bool:
    """Are numbers read from the accelerator in each round of the loop over the loader, as by `loss.item()`?

    The program goes on when all work before is done, so that it gets no further than a step ahead of the accelerator.
    """
    loops = [e for e in event.around if isinstance(e, fx.Repeat)]
    over = [e for e in loops if loader.made in contained(run.state, [e.over])] or loops
    sites = [site for e in over if isinstance(site := e.loop.site, For) and not site.comprehension]
    return bool(sites) and any(_reads(op, depth=2) for op in _each_round(sites[-1].body))


def _each_round(body: Iterable[Op]) -> Iterator[Op]:
    """Yield what a block does whenever it is run: not what stands under a further test."""
    for op in body:
        yield op
        if not isinstance(op, If | Try):
            yield from _each_round(inner for block in blocks(op) for inner in block)


def _reads(op: Op, depth: int) -> bool:
    """Does an operation read numbers, or call a function of its file that always does?"""
    if isinstance(op, ops.CallMethod) and op.name in _READING:
        return True
    if isinstance(op, ops.GetItem) and isinstance(op.key, ConstantKey):  # `loss.data[0]`, as it was written once
        made = definitions(op.owner).made.get(op.base)
        return isinstance(made, ops.GetAttribute) and made.name == "data"
    called = _called(op) if depth else None
    return called is not None and any(_reads(inner, depth - 1) for inner in _each_round(called.body))


def _called(op: Op) -> Function | None:
    """Return the function of the same file that an operation calls by its name, or the method of its own object."""
    function, flow = op.owner, definitions(op.owner)
    if isinstance(op, ops.CallMethod) and flow.is_self(op.base) and function.method.cls is not None:
        return function.method.cls.methods.get(op.name)
    name = flow.path(op.callee) if isinstance(op, ops.Call) else ""
    found = [f for f in function.unit.functions if f.cls is None and f.name == name]
    return found[0] if len(found) == 1 else None


def is_left_at_once(site: object) -> bool:
    """Is it a loop that is left within its first round?"""
    return isinstance(site, For) and reaching(site.owner).has_one_round(site)


def _is_first_batch(site: Op) -> bool:
    """Is it, or a part of it, `next(iter(loader))`? The iterator is made for this batch, which takes longer."""
    flow, known = definitions(site.owner), reaching(site.owner)
    made: Op | None = flow.made.get(site.base) if isinstance(site, ops.CallMethod) else None
    while made is not None:
        match made:
            case ops.Load():
                bound = known.only(made)
                made = flow.made.get(bound.src) if isinstance(bound, ops.Bind) else None
            case ops.GetItem(base=base) | ops.GetAttribute(base=base) | ops.Unpack(src=base):
                made = flow.made.get(base)
            case For(source=source):
                made = flow.made.get(source)  # a part of it
            case ops.Call(arguments=[first, *_]) if flow.called(made) == "next":
                return flow.called(flow.made.get(first.temp)) == "iter"
            case _:
                return False
    return False


def batches_of_its_own(loader: Loader) -> bool:
    """Does a function of the project's own decide what a batch is?"""
    value = loader.given.get("collate_fn")
    return value is not None and not (value.known and value.constant is None)


def may_be_encoded(site: Op) -> bool:
    """May a part of a batch be what a tokenizer gives, whose `to` takes no such argument?

    Source: transformers 4.48 added it (`BatchEncoding.to`, `BatchFeature.to`); before, it raises TypeError.
    """
    names = (name for function in site.owner.unit.functions for name in function.mentions)
    return any(word in name for name in names for word in _ENCODING)


def makes_on_device(loader: Loader) -> bool:
    """Do functions that make the loader's items or batches put them on a device? They are there already, then."""
    unit = loader.point.chain()[0].owner.unit
    named = [f for f in unit.functions if f.name in SAMPLING or "collate" in f.name]
    return any(map(places_on_device, reached([*named, *functions(loader.run.state, loader.given.get("collate_fn"))])))


def reached(functions: Iterable[Function]) -> list[Function]:
    """Return some functions, those within them, and those of their files that they name, and so on."""
    found = list(functions)
    for function in found:
        own = function.cls.methods.values() if function.cls is not None else ()
        near = [*function.nested, *own, *(f for f in function.unit.functions if f.cls is None)]
        found += [f for f in near if f not in found and (f in function.nested or f.name in function.mentions)]
    return found


def places_on_device(function: Function) -> bool:
    """Does it put tensors on what may be an accelerator?"""
    flow = definitions(function)
    return any(_is_placing(flow, op) for op in operations(function.body))


def _is_placing(flow: DefUse, op: Op) -> bool:
    if type(op) is not ops.CallMethod or op.name not in ("to", "cuda"):
        return False
    return op.name == "cuda" or any(_is_device(flow, a.temp) for a in op.arguments if a.name != "dtype")


def _is_device(flow: DefUse, temp: int) -> bool:
    match flow.made.get(temp):
        case ops.Constant(value=str(text)):
            return text.startswith(ACCELERATORS)
        case ops.Load() | ops.GetAttribute():
            return not flow.name(temp).startswith("torch.")
    return False
