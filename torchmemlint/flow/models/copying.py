"""Copies: what `copy.copy` and `copy.deepcopy` give."""

from __future__ import annotations

from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.heap import BOXES, reachable, renew
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import CONTEXT_LIMIT, Object, Parameters, Ref
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.models import containers, gradients

_ELEMENTS = frozenset({Kind.LIST, Kind.DICT, Kind.TUPLE})
_COPIED = frozenset({Kind.MODULE, Kind.INSTANCE, Kind.OPAQUE, Kind.OPTIMIZER})


def _deepcopy(site: CallSite) -> Value:
    value = site.value(0)
    if any(r.symbolic for r in value.refs) and site.knows_more:
        return site.postpone("copy.deepcopy")
    if value.refs and all(r.symbolic for r in value.refs):
        return _copied_unseen(site, value)
    if any(type(r) is Object and r.kind in _COPIED for r in value.refs):
        return _copied_modules(site, value)
    return Value(value.refs, value.graph, open=value.open)


def _copied_unseen(site: CallSite, value: Value) -> Value:
    """Return a copy of what is not known, with the flags that were set on that."""
    made = Object.of(Kind.OPAQUE, site.point.site, site.point.context, "copy.deepcopy")
    for flag in (Special.FROZEN, Special.EVALUATING):
        set_to = [site.state.heap.get(r, flag) for r in value.refs]
        if set_to[0] is not None and len(set_to) == 1:
            site.state.heap.put(made, flag, set_to[0])
    return Value(made.alone, value.graph, open=True)


def _copy(site: CallSite) -> Value:
    """`copy.copy(x)`: another container of the same elements. A network has the same parameters: it stays the same."""
    value = site.value(0)
    if any(r.symbolic for r in value.refs) and site.knows_more:
        return site.postpone("copy.copy")
    refs, graph = set[Ref](), value.graph
    for r in value.each():
        if type(r) is Object and r.kind in _ELEMENTS:
            made = containers.made(site, r.kind, r.about)
            for holder in made.each():
                for key, held in site.state.heap.edges(r).items():
                    if key is not Special.MADE:
                        site.state.heap.put(holder, key, held)
            refs |= made.refs
        else:
            refs.add(r)
    return Value(frozenset(refs), graph, value.constant, value.open)


def _copied_modules(site: CallSite, value: Value) -> Value:
    heap, point = site.state.heap, site.point
    copies: dict[Ref, Object] = {}
    for r in value.each():
        if type(r) is Object and r.kind in _COPIED:
            copies[r] = Object.of(r.kind, point.site, point.context, r.about)
    for old in sorted(reachable(site.state, list(copies)), key=lambda r: r.serial):
        if type(old) is Object and old.kind in _COPIED | BOXES and old not in copies:
            copies[old] = Object.of(old.kind, old.site, (point.site, *old.context)[:CONTEXT_LIMIT], old.about)
    held = {old: list(heap.edges(old).items()) for old in copies}
    for old, copy in copies.items():
        renew(site.state, copy)
        for key, kept in held[old]:
            if key is not Special.MADE and key is not Special.TAUGHT:
                refs = frozenset(_copied(copies, r) for r in kept.refs)
                heap.put(copy, key, Value(refs, kept.graph, kept.constant, kept.open))
    for copy in copies.values():
        if copy.kind is Kind.OPTIMIZER:  # the copies of the networks that it trains are trained
            gradients.use_of_all(site.frame, site.state, heap.edges(copy).values(), point)
    return Value(frozenset(copies.get(r, r) for r in value.refs), value.graph, open=value.open)


def _copied(copies: dict[Ref, Object], r: Ref) -> Ref:
    """Return the copy of something, if there is one."""
    return Parameters.of(copies.get(r.module, r.module)) if type(r) is Parameters else copies.get(r, r)


FUNCTIONS = {"copy.deepcopy": _deepcopy, "copy.copy": _copy}
