"""Remaining: tensors that hooks have put onto modules or lists, where nothing takes them away again.

What a hook of the forward pass pushes, and one of the backward pass pops, stays where a pass has no backward. What a
hook has set on its module stays when the hook is removed. What it adds to a list that nothing empties grows with each
pass; where that has a graph, the report is about the graph (TML106).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import reachable
from torchmemlint.flow.domain.refs import Ref, root
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.hooking import Hooks
from torchmemlint.flow.fact.logs import Met, Run
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.owners import Left, Remaining
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir.blocks import layout_of, operations
from torchmemlint.flow.ir.defuse import DefUse, definitions, operands
from torchmemlint.flow.ir.ops import (
    Bind,
    Call,
    CallMethod,
    Constant,
    Function,
    GetAttribute,
    GetItem,
    Load,
    Make,
    Op,
    Remove,
    SetAttribute,
    SetItem,
    Unit,
)
from torchmemlint.flow.ir.places import Scope, Temp
from torchmemlint.flow.models.hooks import functions
from torchmemlint.knowledge import torch_api

_PUSHING = frozenset({"append", "appendleft"})
_POPPING = frozenset({"pop", "popleft", "clear"})
_SAME = frozenset("detach clone contiguous float half bfloat16 double requires_grad_ detach_ squeeze view".split())
_CONTAINERS = frozenset({"list", "dict", "set", "deque", "defaultdict", "OrderedDict"})
_OF_GRADIENTS = frozenset({"is_grad_enabled", "requires_grad"})
_TRAINING = "training"
Ran = Met[fx.Forward] | Met[fx.Infer]
Spot = tuple[str, str]  # whose attribute something is, and its name


def remaining(places: Places, hooks: Hooks) -> Iterator[Case]:
    """Yield what hooks leave behind, as some runs show it."""
    told: set[Op] = set()
    for run, evidence in hooks.seen:
        found = (_pushed(places, hooks, run, evidence), _set(places, hooks, run), _added(places, hooks, run, evidence))
        for op, case in chain.from_iterable(found):
            if op not in told:
                told.add(op)
                yield case


def _written(op: CallMethod | SetAttribute) -> str:
    """Return where a hook puts something, as it is written."""
    flow, base = definitions(op.owner), op.base
    item = flow.made.get(base)
    path = f"{flow.path(item.base)}[…]" if isinstance(item, GetItem) else flow.path(base)
    return f"{path}.{op.name}" if isinstance(op, SetAttribute) else path or "the list"


def _functions(run: Run) -> Iterator[tuple[fx.Hooked, Function]]:
    """Yield the hooks that a run registers, each with what it may call."""
    return ((hooked, f) for hooked in run.effects(fx.Hooked) for f in functions(run.state, hooked.hook))


# Pushed by the forward pass, popped by the backward pass.


def _pushed(places: Places, hooks: Hooks, run: Run, evidence: Evidence) -> Iterator[tuple[Op, Case]]:
    backward = [function for hooked, function in _functions(run) if "backward" in hooked.kind]
    popped = {spot: op for function in backward for spot, op in _emptied(function)}
    for hooked, function in _functions(run) if popped else ():
        if "forward" not in hooked.kind or hooks.may_be_removed(hooked):
            continue
        for spot, op in _grown(function):
            taken = popped.get(spot)
            alone = _alone(run, hooked.owner, function)
            if taken is None or alone is None or _is_emptied(hooks.units, spot, {function, taken.owner}):
                continue
            loop = alone.loop()
            if loop is not None:
                calls = tuple(map(places.of, alone.effect.point.chain()[:1]))
                about, moves = Remaining(_written(op), Left.POPPED), (places.of(taken),)
                at, around = places.of(op), places.of(loop)
                yield op, Case(at, "TML803", evidence.cut, loop=around, calls=calls, moves=moves, about=about)


def _alone(run: Run, owner: Ref, hook: Function) -> Met[fx.Infer] | None:
    """Return a pass without gradients in which a hook of a module does what it does in training."""
    if not _OF_GRADIENTS.isdisjoint(hook.mentions):
        return None
    for met in run.of(fx.Infer):
        if not (_TRAINING in hook.mentions and met.effect.evaluating) and _is_of(run, owner, met.effect.module):
            return met
    return None


# Set on a module by a hook that is removed.


def _set(places: Places, hooks: Hooks, run: Run) -> Iterator[tuple[Op, Case]]:
    for hooked, function in _functions(run):
        if not hooks.is_removed(hooked) or "forward" not in hooked.kind:
            continue
        for op in operations(function.body):
            spot = _spot(function, op.base, op.name) if isinstance(op, SetAttribute) else None
            if not isinstance(op, SetAttribute) or spot is None or spot[0] != _MODULE:
                continue
            if _is_of_pass(function, op.src) and not _is_emptied(hooks.units, spot, {function}):
                calls = tuple(map(places.of, hooked.point.chain()[:1]))
                about = Remaining(_written(op), Left.REMOVED)
                yield op, Case(places.of(op), "TML803", frozenset(), True, calls=calls, about=about)


def _is_of_pass(function: Function, temp: Temp) -> bool:
    """Is it what a module is given or gives, and no number that was computed of it?"""
    flow = definitions(function)
    given = [parameter.name for parameter in function.parameters[_first(function) + 1 :]]
    op = flow.made.get(temp)
    while True:
        match op:
            case CallMethod(base=base, name=name) if name in _SAME:
                op = flow.made.get(base)
            case GetItem(base=base) | GetAttribute(base=base, name="data"):
                op = flow.made.get(base)
            case Load(name=name):
                return name.text in given
            case _:
                return False


# Added by each pass.


def _added(places: Places, hooks: Hooks, run: Run, evidence: Evidence) -> Iterator[tuple[Op, Case]]:
    """Yield where hooks that are never removed add tensors without a graph to a list, for passes that are repeated."""
    for hooked, function in _functions(run):
        backward = "backward" in hooked.kind
        if hooks.may_be_removed(hooked) or not ("forward" in hooked.kind or backward):
            continue
        owner = hooked.owner
        recorded: list[Ran] = [met for met in run.of(fx.Forward) if _is_of(run, owner, met.effect.module)]
        passes = [*recorded, *(met for met in run.of(fx.Infer) if _is_of(run, owner, met.effect.module))]
        repeated = [(met, loop) for met in (recorded if backward else passes) if (loop := met.loop()) is not None]
        for spot, op in _grown(function) if repeated else ():
            if (recorded and not backward and not _is_detached(op)) or _is_emptied(hooks.units, spot, {function}):
                continue
            (met, loop), *_ = repeated
            wanted = any(_is_read_whole(f, spot) for unit in hooks.units for f in unit.functions)
            doubts = evidence.cut | ({Doubt.WANTED} if wanted else set())
            calls = tuple(places.of(op) for point in (hooked.point, met.effect.point) for op in point.chain()[:1])
            about = Remaining(_written(op), Left.GROWN)
            yield op, Case(places.of(op), "TML803", doubts, loop=places.of(loop), calls=calls, about=about)


def _is_of(run: Run, owner: Ref, ran: Value) -> bool:
    """Is a module, or a whole that it is a part of, what is run?"""
    return any(root(owner) is root(r) for r in ran.refs) or owner in reachable(run.state, ran.refs)


def _is_detached(op: CallMethod) -> bool:
    """Is what a hook adds cut from its graph?"""
    made = definitions(op.owner).behind(op.arguments[0].temp)
    return any(isinstance(one, CallMethod | GetAttribute) and one.name in torch_api.CUTS | {"data"} for one in made)


def _is_read_whole(function: Function, spot: Spot) -> bool:
    """Does a function go through all of what is under a name, or hand it on, rather than look at an item?"""
    last, flow = spot[1].rpartition(".")[2], definitions(function)
    loads = {
        temp
        for temp, op in flow.made.items()
        if (isinstance(op, GetAttribute) and op.name == last) or (isinstance(op, Load) and op.name.text == last)
    }
    users = [op for op in operations(function.body) if not loads.isdisjoint(operands(op))]
    items = [op for op in users if isinstance(op, CallMethod | GetItem | SetItem | SetAttribute) and op.base in loads]
    return any(op not in items and flow.called(op) != "len" for op in users)


# Where hooks put things.

_MODULE, _SELF, _AROUND = "module", "self", ""


def _first(function: Function) -> int:
    """Return which parameter of a hook is the module: that of a method is the second."""
    return 1 if function.receiver is not None else 0


def _spot(function: Function, base: Temp, attribute: str = "") -> Spot | None:
    """Return what something is an attribute of: the module, the hook's own object, or what is around the function."""
    flow = definitions(function)
    op = flow.made.get(base)
    while isinstance(op, GetItem):  # of a dict of lists
        base = op.base
        op = flow.made.get(base)
    head, _, rest = flow.path(base).partition(".")
    name = ".".join(part for part in (rest, attribute) if part)
    names = [parameter.name for parameter in function.parameters]
    if not head:
        return None
    if head == function.receiver:
        return _SELF, name
    if head in names:
        return (_MODULE, name) if names.index(head) == _first(function) else None
    return None if head in function.bound else (_AROUND, f"{head}.{name}".rstrip("."))


def _grown(function: Function) -> Iterator[tuple[Spot, CallMethod]]:
    """Yield where a hook puts what the pass gives it onto a list."""
    for op in operations(function.body):
        if isinstance(op, CallMethod) and op.name in _PUSHING and op.arguments:
            spot = _spot(function, op.base)
            if spot is not None and _is_of_pass(function, op.arguments[0].temp):
                yield spot, op


def _emptied(function: Function) -> Iterator[tuple[Spot, Op]]:
    """Yield where a function takes something away again."""
    for op in operations(function.body):
        spot = None
        if isinstance(op, CallMethod) and op.name in _POPPING:
            spot = _spot(function, op.base)
        elif isinstance(op, Remove):
            spot = _spot(function, op.base, str(getattr(op.key, "value", "")) if op.attribute else "")
        elif isinstance(op, SetAttribute):
            spot = _spot(function, op.base, op.name)
        if spot is not None:
            yield spot, op


def _is_emptied(units: list[Unit], spot: Spot, apart: set[Function]) -> bool:
    """Does another function take away what is under a name, of whatever it is: here, or where the hook is written?"""
    last = spot[1].rpartition(".")[2]
    functions = (f for unit in {*units, *(f.unit for f in apart)} for f in unit.functions if f not in apart)
    others = (f for f in functions if last in f.mentions and f.name != "__init__")
    return any(_takes_away(op, last) for function in others for op in operations(function.body))


def _is_nothing(flow: DefUse, temp: Temp) -> bool:
    """Is it None, or a new container?"""
    op = flow.made.get(temp)
    new = isinstance(op, Make) or (isinstance(op, Call) and flow.called(op).rpartition(".")[2] in _CONTAINERS)
    return new or (isinstance(op, Constant) and op.value is None)


def _takes_away(op: Op, name: str) -> bool:
    flow = definitions(op.owner)
    match op:
        case SetAttribute(name=set_name, src=src):
            return set_name == name and _is_nothing(flow, src)
        case Bind(name=bound, src=src):
            nested = bound.hops > 0 or (bound.scope is Scope.GLOBAL and op.owner.parent is not None)
            return bound.text == name and (nested or any(layout_of(op.owner).loops(op))) and _is_nothing(flow, src)
        case Remove():
            return getattr(op.key, "value", None) == name or flow.path(op.base).rpartition(".")[2] == name
        case CallMethod(base=base, name=method) if method in _POPPING:
            return flow.path(base).rpartition(".")[2] == name
        case Constant(value=value):
            return value == name  # `delattr(module, "saved")`
    return False
