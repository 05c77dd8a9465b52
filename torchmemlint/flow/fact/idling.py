"""Idling: loaders that load in the training process, though workers could do their work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import contained
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Input, Object, Ref
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.loaders import Loader
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.moving import is_left_at_once, places_on_device, reached
from torchmemlint.flow.fact.numbers import argument
from torchmemlint.flow.fact.sampling import Sampling
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import If
from torchmemlint.flow.ir.defuse import DefUse, definitions, operands
from torchmemlint.flow.ir.ops import Class, Op, Unit
from torchmemlint.flow.ir.places import Temp
from torchmemlint.flow.models.hooks import functions
from torchmemlint.knowledge.services import ACCELERATORS

_DEBUGGING = ("debug", "dev_run", "overfit", "sanity", "dry_run", "smoke", "profile", "win32", "windows")
_DEFAULTS = frozenset({"torch.set_default_tensor_type", "torch.set_default_device"})


def idle(engine: Engine, runs: list[Run], loaders: Iterable[Loader]) -> Iterator[tuple[Loader, bool]]:
    """Yield the loaders without workers, and whether something shows that one should have none where it is built."""
    sampling = Sampling(engine, runs)
    for loader in loaders:
        workers = loader.workers
        if not (_is_left_at_none(engine, runs, loader) if workers is None else workers.value == 0):
            yield loader, True
            continue
        if _is_written(loader.point.chain()[0]):
            continue
        data, unit = loader.given.get("dataset"), loader.point.chain()[0].owner.unit
        if sampling.is_iterable(data) or _is_for_debugging(loader.event) or _is_demonstration(loader, runs):
            continue
        if _is_only_counted(loader.point.chain()[0]):
            continue
        if loader.name.startswith("torch_geometric.") or _makes_on_device(unit) or _is_for_single_batches(loader, runs):
            continue
        collating = functions(loader.run.state, loader.given.get("collate_fn"))
        if sampling.works(data) and not any(map(places_on_device, reached(collating))):
            yield loader, False


def _is_left_at_none(engine: Engine, runs: Iterable[Run], loader: Loader) -> bool:
    """Is it no workers by a default of the constructor of its object, which all who make such objects leave alone?"""
    given, receiver = loader.given.get("num_workers"), loader.run.receiver
    (formal,) = given.refs if given is not None and len(given.refs) == 1 else (None,)
    if (
        type(formal) is not Input
        or formal.function.cls is None
        or receiver is None
        or formal.function.name != "__init__"
    ):
        return False
    found = [made for run in runs for made in _instances(run, formal.function.cls, receiver)]
    key = next((key for key, held in loader.run.state.heap.edges(receiver).items() if held.refs == formal.alone), None)
    values = [held for run, one in found if key is not None and (held := run.state.heap.get(one, key)) is not None]
    return bool(values) and len(values) == len(found) and all(v.constant == 0 and v.known for v in values)


def _instances(run: Run, cls: Class, receiver: Ref) -> Iterator[tuple[Run, Ref]]:
    for one in run.state.heap.table:
        if type(one) is Object and one.kind is Kind.INSTANCE and one.about.cls is cls and one is not receiver:
            yield run, one


def _is_written(made: Op) -> bool:
    """Is the number written where the loader is built? Then somebody has decided so."""
    return isinstance(definitions(made.owner).made.get(argument(made, 5, "num_workers")), ops.Constant)


def _is_for_debugging(event: Event) -> bool:
    """Is it built only where somebody is debugging, or on a system without cheap processes?"""
    for effect, branch in event.branches.items():
        site = effect.point.site
        if type(site) is If:
            flow = definitions(site.owner)
            made = flow.made.get(site.test)
            holds = branch is not (type(made) is ops.Compare and made.operator == "not")
            if holds and any(word in text.lower() for text in _texts(flow, site.test) for word in _DEBUGGING):
                return True
    return False


def _texts(flow: DefUse, temp: Temp) -> Iterator[str]:
    """Yield the names and texts that a test is made of."""
    made = flow.made.get(temp)
    match made:
        case ops.Load(name=name):
            yield name.text
        case ops.GetAttribute(name=attribute):
            yield attribute
        case ops.Constant(value=str(text)):
            yield text
    for operand in operands(made) if made is not None else ():
        yield from _texts(flow, operand)


def _is_demonstration(loader: Loader, runs: Iterable[Run]) -> bool:
    """Is it built under the main guard of a file that trains and computes nothing?"""
    owner = loader.point.chain()[0].owner
    if owner.parent is not None:
        return False
    tests = [e.point.site for e in loader.event.branches if type(e.point.site) is If]
    guarded = any("__main__" in _texts(definitions(test.owner), test.test) for test in tests)
    own = [run for run in runs if run.entry.unit is owner.unit]
    return guarded and not any(run.of(kind) for run in own for kind in (fx.Differentiate, fx.Forward, fx.Infer))


def _makes_on_device(unit: Unit) -> bool:
    """Does a file have tensors made on an accelerator unless something else is said? Workers cannot."""
    for function in unit.functions:
        if "set_default_tensor_type" in function.mentions or "set_default_device" in function.mentions:
            flow = definitions(function)
            for op in operations(function.body):
                if type(op) is ops.CallMethod and f"{flow.name(op.base)}.{op.name}" in _DEFAULTS and op.arguments:
                    return _is_accelerator(flow, op.arguments[0].temp, typed=op.name.endswith("type"))
    return False


def _is_accelerator(flow: DefUse, temp: Temp, *, typed: bool) -> bool:
    made = flow.made.get(temp)
    if type(made) is ops.Constant:
        text = made.value if isinstance(made.value, str) else ""
        return ".cuda." in text if typed else text.startswith(ACCELERATORS)
    return ".cuda." in flow.name(temp) if typed else True


def _is_only_counted(made: Op) -> bool:
    """Is all that a file does with the variable of a loader to ask how many batches it has?"""
    bound = [one.name.text for one in definitions(made.owner).following(made) if isinstance(one, ops.Bind)]
    if len(bound) != 1:
        return False
    flows = [definitions(f) for f in made.owner.unit.functions if bound[0] in f.mentions or f is made.owner]
    uses = [
        flow.called(use)
        for flow in flows
        for op in operations(flow.function.body)
        if isinstance(op, ops.Load) and op.name.text == bound[0]
        for use in flow.following(op)
    ]
    return bool(uses) and set(uses) == {"len"}


def _is_for_single_batches(loader: Loader, runs: Iterable[Run]) -> bool:
    """Is all that is done with a loader, as far as it is seen, to take single batches of it?"""
    taken = False
    for run in runs:
        for repeat in (event.effect for event in run.repeats):
            if loader.made in contained(run.state, [repeat.over]):
                if not is_left_at_once(repeat.loop.site):
                    return False
                taken = True
        for effect in run.effects(fx.Serve):
            if effect.name == "iter" and loader.made in contained(run.state, [effect.arguments.value(0)]):
                taken = True
        for call in run.unseen():
            if loader.made in contained(run.state, call.arguments.all()):
                return False
    return taken
