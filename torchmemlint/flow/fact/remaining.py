"""Remaining: tensors that hooks have put onto modules or lists, where nothing takes them away again.

What a hook of the forward pass pushes, and one of the backward pass pops, stays where a pass has no backward. What a
hook has set on its module stays when the hook is removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import reachable
from torchmemlint.flow.domain.refs import Ref, root
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.hooking import Hooks
from torchmemlint.flow.fact.logs import Met, Run
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.owners import Remaining
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import (
    CallMethod,
    Constant,
    Function,
    GetAttribute,
    GetItem,
    Load,
    Op,
    Remove,
    SetAttribute,
    Unit,
)
from torchmemlint.flow.ir.places import Temp
from torchmemlint.flow.models.hooks import functions

_PUSHING = frozenset({"append", "appendleft"})
_POPPING = frozenset({"pop", "popleft", "clear"})
_SAME = frozenset("detach clone contiguous float half bfloat16 double requires_grad_ detach_ squeeze view".split())
_OF_GRADIENTS = frozenset({"is_grad_enabled", "requires_grad"})
_TRAINING = "training"
Spot = tuple[str, str]  # whose attribute something is, and its name


def remaining(places: Places, hooks: Hooks) -> Iterator[Case]:
    """Yield what hooks leave behind, as some runs show it."""
    told: set[Op] = set()
    for run, evidence in hooks.seen:
        for op, case in (*_pushed(places, hooks, run, evidence), *_set(places, hooks, run)):
            if op not in told:
                told.add(op)
                yield case


def _written(op: CallMethod | SetAttribute) -> str:
    """Return where a hook puts something, as it is written."""
    path = definitions(op.owner).path(op.base)
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
                about, moves = Remaining(_written(op), True), (places.of(taken),)
                at, around = places.of(op), places.of(loop)
                yield op, Case(at, "TML803", evidence.cut, loop=around, calls=calls, moves=moves, about=about)


def _alone(run: Run, owner: Ref, hook: Function) -> Met[fx.Infer] | None:
    """Return a pass without gradients in which a hook of a module does what it does in training."""
    if not _OF_GRADIENTS.isdisjoint(hook.mentions):
        return None
    for met in run.of(fx.Infer):
        if _TRAINING in hook.mentions and met.effect.evaluating:
            continue
        modules = met.effect.module.refs
        if any(root(owner) is root(r) for r in modules) or owner in reachable(run.state, modules):
            return met
    return None


# Set on a module by a hook that is removed.


def _set(places: Places, hooks: Hooks, run: Run) -> Iterator[tuple[Op, Case]]:
    for hooked, function in _functions(run):
        if hooked.point.site not in hooks.removed or "forward" not in hooked.kind:
            continue
        for op in operations(function.body):
            spot = _spot(function, op.base, op.name) if isinstance(op, SetAttribute) else None
            if not isinstance(op, SetAttribute) or spot is None or spot[0] != _MODULE:
                continue
            if _is_of_pass(function, op.src) and not _is_emptied(hooks.units, spot, {function}):
                calls = tuple(map(places.of, hooked.point.chain()[:1]))
                about = Remaining(_written(op), False)
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
    """Does another function take away what is under a name, of whatever it is?"""
    last = spot[1].rpartition(".")[2]
    others = (
        f for unit in units for f in unit.functions if f not in apart and last in f.mentions and f.name != "__init__"
    )
    return any(_takes_away(op, last) for function in others for op in operations(function.body))


def _takes_away(op: Op, name: str) -> bool:
    flow = definitions(op.owner)
    match op:
        case SetAttribute(name=set_name, src=src):
            made = flow.made.get(src)
            return set_name == name and isinstance(made, Constant) and made.value is None
        case Remove():
            return getattr(op.key, "value", None) == name or flow.path(op.base).rpartition(".")[2] == name
        case CallMethod(base=base, name=method) if method in _POPPING:
            return flow.path(base).rpartition(".")[2] == name
        case Constant(value=value):
            return value == name  # `delattr(module, "saved")`
    return False
