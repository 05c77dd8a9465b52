"""Who requires gradients: frozen modules, and flags that only a caller knows."""

from __future__ import annotations

from torchmemlint.flow.domain.effects import Freeze, Point
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import State
from torchmemlint.flow.domain.refs import Kind, Object, Parameters, Ref, Special
from torchmemlint.flow.domain.values import Value, constant

_OWNERS = frozenset({Kind.MODULE, Kind.INSTANCE})


def is_frozen(state: State, module: Ref) -> bool:
    """Do the parameters of a module not require gradients?"""
    found = state.heap.get(module, Special.FROZEN)
    return found is not None and found.constant is True


def set_requires_grad(frame: Frame, state: State, base: Value, flag: Value, point: Point) -> None:
    """`x.requires_grad = flag` of a module's parameters; where the flag is not known, the caller decides."""
    for target in base.refs:
        owner = target.module if type(target) is Parameters else target
        if owner.symbolic or (not flag.known and flag.refs):
            frame.log(Freeze(point, owner, flag))
        if flag.known and (owner.symbolic or (type(owner) is Object and owner.kind in _OWNERS)):
            state.heap.put(owner, Special.FROZEN, constant(flag.constant is False))
