"""Tests that were met or not: what the places in them hold then."""

from __future__ import annotations

from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import State, elements, load
from torchmemlint.flow.domain.keys import each_key
from torchmemlint.flow.domain.kinds import Special
from torchmemlint.flow.domain.memory import write
from torchmemlint.flow.domain.refs import Behind, Globals, Key, Object, Point, Ref, with_graphs
from torchmemlint.flow.domain.values import NONE, Value, of
from torchmemlint.flow.engine import access
from torchmemlint.flow.ir.control import Narrowing
from torchmemlint.flow.ir.places import Name, Scope
from torchmemlint.flow.models import containers


def narrow(frame: Frame, state: State, narrowings: tuple[Narrowing, ...], taken: bool) -> None:
    """Let places hold what a test says of them on one of its branches."""
    for narrowing in narrowings:
        if not (narrowing.in_then if taken else narrowing.in_orelse):
            continue
        is_none = narrowing.kind == "none" and narrowing.holds is taken
        if narrowing.holds is taken and not is_none:
            continue
        name = narrowing.name
        if name is None:
            continue
        local = name.scope is Scope.LOCAL
        holder = None if local else _holder_of(frame, state, name)
        if not local and holder is None:
            continue
        value = state.variables.get(name.text) if holder is None else load(state, holder, name.text)
        if value is None:
            continue
        if narrowing.key is not None:
            _narrow_part(frame, state, value, narrowing.key, narrowing.kind, is_none)
            continue
        narrower = NONE if is_none else narrowed(frame, value, narrowing.kind)
        if narrower is value:
            continue
        if holder is not None:
            state.heap.put(holder, name.text, narrower)
        else:
            state.variables[name.text] = narrower
            if narrowing.kind == "tensor":
                _narrow_items(frame, state, value, narrower)


def _holder_of(frame: Frame, state: State, name: Name) -> Ref | None:
    """Return the frame of a variable that nested functions share, or of a file."""
    if name.scope is Scope.GLOBAL:
        return frame.own if frame.function.parent is None else Globals.of(frame.function.unit.name)
    if name.scope is not Scope.CELL:
        return None
    holder = frame.own
    for _ in range(name.hops):
        around = load(state, holder, Special.OUTER)
        if around is None or len(around.refs) != 1:
            return None
        (holder,) = around.refs
    return holder


def _narrow_part(frame: Frame, state: State, base: Value, key: Key, kind: str, is_none: bool) -> None:
    if len(base.refs) == 1:
        (holder,) = base.refs
        held = load(state, holder, key)
        if held is not None and (narrower := NONE if is_none else narrowed(frame, held, kind)) is not held:
            state.heap.put(holder, key, narrower)


def _narrow_items(frame: Frame, state: State, item: Value, narrower: Value) -> None:
    """Let containers hold what a test says of an item that a loop has in turn, under the key that it has in turn."""
    keys = [key for key in frame.keys if type(key) is Behind and key is each_key(key.base)]
    held = {key: elements(state, key.base) for key in keys}
    chosen = [key for key in keys if _comes_from(item, held[key])]
    way = item.graph.difference(*(held[key].graph for key in chosen))
    if containers.through(way) == way:  # it comes from nothing else
        for key in chosen:
            write(frame, state, of(key.base), key, narrower, Point(frame.function))


def _comes_from(item: Value, held: Value) -> bool:
    """Is it what a container holds, or may it be?"""
    return item.refs == held.refs and with_graphs(held.graph) <= item.graph


def narrowed(frame: Frame, value: Value, kind: str) -> Value:
    """Return what is left of a value that is no tensor, no module, or not None."""
    if kind == "tensor":
        if value.graph and not any(type(r) is Object for r in value.refs):
            return Value(value.refs, frozenset(), value.constant, value.open)
    elif kind == "module":
        return access.no_module(frame, value)
    elif value.constant is None:
        return Value(value.refs, value.graph, open=value.open or not value.refs)
    return value
