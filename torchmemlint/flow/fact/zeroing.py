"""Zeroing: gradients that are set to zero between two steps of training, and so stay allocated."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.domain.refs import Parameters, Point, Ref, path
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.updates import updates
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import layout_of, operations
from torchmemlint.flow.ir.control import For, If
from torchmemlint.flow.ir.defuse import definitions, of_gradient
from torchmemlint.flow.ir.places import AttributePlace, Name, Temp
from torchmemlint.immutable import immutable

# What puts numbers into a gradient that has to be there, and what makes the step of a parameter by hand.
_WRITING = frozenset("add_ sub_ copy_ set_ index_add_ scatter_add_ index_copy_ lerp_ addcmul_ addcdiv_".split())
_UPDATING = frozenset("add_ sub_ addcdiv_ addcmul_ copy_".split())
# Who captures a step as a graph of kernels, or shards its gradients, needs them to stay where they are.
_NEEDS_THEM = ("cudagraph", "cuda.graph(", "make_graphed", "reduce-overhead", "sharded", "fully_shard", "fsdp")
_CHECKS = frozenset({"isnan", "isinf", "isfinite"})


class Shown(enum.Enum):
    """What shows that gradients of parameters are zeroed."""

    ASKED = "`set_to_none=False` asks for zeros"
    MODULE = "this loop runs over a module's parameters"
    OPTIMIZER = "this loop runs over an optimizer's parameters"
    UPDATED = "the same loop updates the parameters"


@immutable()
class Zeroing:
    """A call that sets gradients to zero where they lie."""

    point: Point
    shown: Shown


def zeroings(engine: Engine, done: Iterable[Run]) -> Iterator[Zeroing]:
    """Yield the calls that zero gradients between two steps, of some files."""
    found: dict[ops.Op, Zeroing] = {}
    discarding: set[ops.Op] = set()
    writing: dict[ops.Unit, bool] = {}
    for run in done:
        if run.life is not None:
            continue  # seen where each method is run once
        events = list(updates(run))
        training = [*run.of(fx.Differentiate), *(e for e, _ in events if not _zeroes(e.effect))]
        for event, holder in events:
            chain = event.effect.point.chain()
            op = chain[0] if chain else None
            shown = _shown(op, holder.refs if holder is not None else ()) if _zeroes(event.effect) else None
            if op is None or shown is None or _is_chosen(event, op):
                continue
            unit = op.owner.unit
            if unit not in writing:
                text = engine.index.sources.text(engine.index.sources.path(unit)).lower()
                writing[unit] = any(word in text for word in _NEEDS_THEM) or _writes_gradients(unit)
            is_own = op.owner.cls is not None and op.owner.name == "zero_grad"  # it stands for that of an optimizer
            alone = shown is Shown.UPDATED or is_own
            if writing[unit] or not (alone or training):
                continue
            if shown is not Shown.UPDATED and _discards(run, training, event):
                discarding.add(op)
            found.setdefault(op, Zeroing(event.effect.point, shown))
    yield from (zeroing for op, zeroing in found.items() if op not in discarding)


def _zeroes(effect: Effect) -> bool:
    return getattr(effect, "name", "") == "zero_grad"


def _shown(op: ops.Op | None, holder: Iterable[Ref]) -> Shown | None:
    """Return what shows that an operation zeroes the gradients of parameters, where it does not drop them."""
    if not isinstance(op, ops.CallMethod):
        return None
    if op.name == "zero_grad":
        flags = [a.temp for a in op.arguments if a.name in ("", "set_to_none")]
        made = definitions(op.owner).made
        keeps = any(isinstance(flag := made.get(t), ops.Constant) and flag.value is False for t in flags)
        return Shown.ASKED if keeps else None
    parameter = _parameter(op)
    loop = _loop_over(op, parameter) if parameter is not None else None
    if parameter is None or loop is None:
        return None  # of some of them, which are not to move, or of an input
    if any(type(r) is Parameters for r in holder):
        return Shown.MODULE
    if any(part.key == "params" for r in holder for part in path(r)):
        return Shown.OPTIMIZER
    return Shown.UPDATED if _updates(loop, parameter) else None


def _parameter(op: ops.CallMethod) -> Name | None:
    """Return `p` of `p.grad.zero_()` and `p.grad.data.zero_()`."""
    temp = of_gradient(op)
    load = definitions(op.owner).made.get(temp) if temp is not None else None
    return load.name if isinstance(load, ops.Load) else None


def _loop_over(op: ops.Op, name: Name) -> For | None:
    """Return the innermost loop around an operation that binds a name anew in each round."""
    around = (loop for loop in layout_of(op.owner).loops(op) if isinstance(loop, For))
    return next((loop for loop in around if _binds(loop, name)), None)


def _binds(loop: For, name: Name) -> bool:
    return name.text in loop.writes and any(
        getattr(op, "name", None) == name and not isinstance(op, ops.Load) for op in operations(loop.body)
    )


def _updates(loop: For, name: Name) -> bool:
    """Does the loop itself make the step: `p -= lr * p.grad`, `p.data.add_(...)`?"""
    made = definitions(loop.owner).made

    def is_it(temp: Temp) -> bool:
        owner = made.get(temp)
        if isinstance(owner, ops.GetAttribute) and owner.name == "data":
            owner = made.get(owner.base)
        return isinstance(owner, ops.Load) and owner.name == name

    for op in operations(loop.body):
        match op:
            case ops.Operate(place=place, operands=[first, *_]) if place is not None and is_it(first):
                return True
            case ops.CallMethod(base=base, name=method) if method in _UPDATING and is_it(base):
                return True
    return False


def _discards(run: Run, training: list[Event], event: Event) -> bool:
    """Is it what a backward has just computed that goes, before the optimizer sees it?"""
    places = {id(one): number for number, one in enumerate(run.events)}
    before = [one for one in training if places[id(one)] < places[id(event)]]
    after = [one for one in training if places[id(one)] > places[id(event)]]
    if not before or not after:
        return False
    last = max(before, key=lambda one: places[id(one)])
    first = min(after, key=lambda one: places[id(one)])
    return isinstance(last.effect, fx.Differentiate) and not isinstance(first.effect, fx.Differentiate)


# Conditions.


def _is_chosen(event: Event, op: ops.Op) -> bool:
    """Do conditions around decide between this and something else?"""
    tests = [fork.point.site for fork in event.branches if isinstance(fork.point.site, If)]
    if not isinstance(op, ops.CallMethod) or op.name == "zero_grad":
        return any(map(_checks_numbers, tests)) or bool(tests and _has_other_mode(op))
    parameter, flow = _parameter(op), definitions(op.owner)
    own = [test for test in tests if test.owner is op.owner]
    asked = [[one.name for one in flow.behind(test.test) if isinstance(one, ops.Load)] for test in own]
    return len(own) < len(tests) or any(parameter not in names for names in asked)


def _checks_numbers(test: If) -> bool:
    flow = definitions(test.owner)
    names = ({getattr(op, "name", ""), flow.called(op).rpartition(".")[2]} for op in flow.behind(test.test))
    return any(not _CHECKS.isdisjoint(some) for some in names)


def _has_other_mode(op: ops.Op) -> bool:
    """Does the same function call a `zero_grad` of the same thing in another way?"""
    if not isinstance(op, ops.CallMethod):
        return False
    known = definitions(op.owner)
    own, owner = [(a.name, known.written(a.temp)) for a in op.arguments], known.path(op.base)
    calls = [c for c in operations(op.owner.body) if isinstance(c, ops.CallMethod) and c.name == "zero_grad"]
    others = (c.arguments for c in calls if known.path(c.base) == owner)
    return any([(a.name, known.written(a.temp)) for a in given] != own for given in others)


def _writes_gradients(unit: ops.Unit) -> bool:
    """Does a file put something into `.grad` itself? Then whatever follows may count on its being there."""
    return any(_writes_gradient(op) for f in unit.functions if "grad" in f.mentions for op in operations(f.body))


def _writes_gradient(op: ops.Op) -> bool:
    match op:
        case ops.SetAttribute(name="grad", src=src):
            value = definitions(op.owner).made.get(src)
            return not (isinstance(value, ops.Constant) and value.value is None)
        case ops.CallMethod(name=name):
            return name in _WRITING and of_gradient(op) is not None
        case (
            ops.Operate(operator="+", place=AttributePlace(name="grad"))
            | ops.SetItem(place=AttributePlace(name="grad"))
        ):
            return True
    return False
