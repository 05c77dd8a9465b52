"""Who requires gradients: frozen modules, and flags that only a caller knows."""

from __future__ import annotations

from torchmemlint.flow.domain.effects import Freeze, Point
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import State
from torchmemlint.flow.domain.refs import Behind, Kind, Object, Parameters, Ref, Special
from torchmemlint.flow.domain.values import PLAIN, Value, constant

_OWNERS = frozenset({Kind.MODULE, Kind.INSTANCE})


def is_frozen(state: State, module: Ref) -> bool:
    """Do the parameters of a module not require gradients?"""
    found = state.heap.get(module, Special.FROZEN)
    return found is not None and found.constant is True


def is_evaluating(state: State, value: Value) -> bool:
    """Was eval() called last on a module, or on what it is a part of?"""
    return any(_evaluates(state, r) for r in value.refs)


def training(state: State, module: Ref) -> Value:
    """Return `module.training`."""
    found = state.heap.get(module, Special.EVALUATING)
    if found is None or not found.known:
        return PLAIN
    return constant(not found.constant)


def _evaluates(state: State, module: Ref) -> bool:
    while True:
        found = state.heap.get(module, Special.EVALUATING)
        if found is not None:
            return found.constant is True
        if type(module) is Behind:
            module = module.base
        elif type(module) is Object and module.kind is Kind.MODULE and "." in str(module.about):
            module = Object.of(module.kind, module.site, module.context, str(module.about).rpartition(".")[0])
        else:
            return False


def set_requires_grad(frame: Frame, state: State, base: Value, flag: Value, point: Point) -> None:
    """`x.requires_grad = flag` of a module's parameters; where the flag is not known, the caller decides."""
    for target in base.each():
        owner = target.module if type(target) is Parameters else target
        if owner.symbolic or (not flag.known and flag.refs):
            frame.log(Freeze(point, owner, flag))
        if flag.known and (owner.symbolic or (type(owner) is Object and owner.kind in _OWNERS)):
            state.heap.put(owner, Special.FROZEN, constant(flag.constant is False))
