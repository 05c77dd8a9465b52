"""Families: which networks are the same, what they consist of, and whose parameters an optimizer holds."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow.domain.heap import BOXES, State, contained, reachable
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Object, Parameters, Ref, path, root
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.ir.ops import Function, Op

_NETWORKS = frozenset({Kind.INSTANCE, Kind.MODULE})
_TRANSPARENT = BOXES | {Kind.TENSOR}


def origin(reference: Ref) -> object:
    """Where a network was made, or which parameter is annotated as one; what something unknown lies behind."""
    if type(reference) is not Object or reference.kind not in _NETWORKS:
        return root(reference)
    about = reference.about if isinstance(reference.about, str) else ""
    return reference.site, reference.context, about.partition(":")[2].partition(".")[0].removesuffix("[]")


def is_network(engine: Engine, reference: Ref) -> bool:
    """Is it a module of a library, or of a class of the project that may be one?"""
    if type(reference) is not Object or reference.kind not in _NETWORKS:
        return False
    return reference.kind is Kind.MODULE or engine.index.may_be_network(reference.about.cls)


def family(engine: Engine, state: State, modules: Iterable[Ref]) -> set[object]:
    """Return some networks with all that they consist of, as far as that was seen."""
    given = set(modules)
    parts = {origin(r) for r in reachable(state, given) if is_network(engine, r)}
    return parts.union(r if r.symbolic else origin(r) for r in given)


def wholes(reference: Ref) -> set[object]:
    """Return a network with all that its path leads through: it is a part of those."""
    return {reference if reference.symbolic else origin(reference), *(part.base for part in path(reference))}


def held(state: State, holder: Value) -> set[Ref] | None:
    """Return the networks that parameters belong to: those of optimizers or modules. None where it is not known."""
    found: set[Ref] = set()
    for r in contained(state, (holder,)):
        if type(r) is Object and r.kind is Kind.OPTIMIZER:
            inner = _of_parameters(state, state.heap.get(r, "param_groups"))
            if inner is None:
                return None
            found |= inner
        else:
            found.add(r.module if type(r) is Parameters else r)
    return found


def missing(state: State, given: Iterable[Ref]) -> set[Function]:
    """Return which functions made networks that some networks and optimizers consist of, and more than are followed."""
    holders = reachable(state, {*given, *(r for r in state.heap.table if _is_optimizer(r))})
    values = (value for holder in holders for value in state.heap.edges(holder).values())
    held = (r for value in values if value.is_short for r in value.refs)
    return {r.site.owner for r in map(_network, held) if r is not None and isinstance(r.site, Op)}


def _is_optimizer(reference: Ref) -> bool:
    return type(reference) is Object and reference.kind is Kind.OPTIMIZER


def _network(reference: Ref) -> Object | None:
    """Return a network, also that of parameters; None for others."""
    owner = reference.module if type(reference) is Parameters else reference
    return owner if type(owner) is Object and owner.kind in _NETWORKS else None


def _of_parameters(state: State, groups: Value | None) -> set[Ref] | None:
    """Return the networks that an optimizer's parameters belong to; None where some are of what is not known."""
    if groups is None or groups.open:
        return None
    inside = contained(state, (groups,))
    if any(r.symbolic or (type(r) is Object and r.kind not in _TRANSPARENT) for r in inside):
        return None
    return {r.module for r in inside if type(r) is Parameters}


def is_unseen(module: Ref) -> bool:
    """Is the class of a network not known?"""
    if type(module) is not Object:
        return module.symbolic
    return module.kind is Kind.OPAQUE or (module.kind is Kind.MODULE and not isinstance(module.site, Op))
