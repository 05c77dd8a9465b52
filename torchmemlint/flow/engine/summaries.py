"""Summaries: the run of a function, reduced to what its callers need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Effect
from torchmemlint.flow.domain.frame import Frame, Summary
from torchmemlint.flow.domain.heap import State
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import (
    Behind,
    Bound,
    ClassRef,
    Code,
    Key,
    Method,
    Object,
    Parameters,
    Part,
    Phi,
    Ref,
    Result,
    Slot,
    Source,
    SuperRef,
    is_outside,
    root,
)
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.models.handing import FILLED

EDGE_LIMIT = 300  # of the objects that one call makes


def summarised(frame: Frame, end: State) -> Summary:
    """Return the summary of a run."""
    effects = _kept(frame.all_effects(), _is_known_by_its_write)
    wanted = _Wanted(frame)
    wanted.value(frame.returned)
    wanted.value(frame.yielded)
    wanted.effects(effects)
    edges = _edges(end, wanted)
    effects = _kept(effects, lambda effect: _is_of_its_own(effect, wanted))
    parents = {s: frame.provenance.parents[s] for s in wanted.derived}
    symbols = [r for r in wanted.refs if type(r) is Behind and type(root(r)) is not Result]
    symbols.sort(key=lambda r: r.depth)
    return Summary(
        frame.function,
        frame.returned,
        frame.yielded,
        frame.yield_mode,
        effects,
        edges,
        parents,
        symbols,
        frame.reads_back or _escapes(effects, end),
        frame.followed,
        frame.cut,
    )


def _kept(effects: list[Effect], is_idle: Callable[[Effect], bool]) -> list[Effect]:
    """Return effects without those that are idle for a caller, and without tests and loops in which nothing is left.

    A loop tells what it runs over, too.
    """
    found: list[Effect] = []
    for effect in effects:
        if type(effect) is fx.Fork:
            then, orelse = _kept(effect.then, is_idle), _kept(effect.orelse, is_idle)
            if then or orelse:
                still = all(map(_is_still, then)) and all(map(_is_still, orelse))
                found.append(replace(effect, then=then, orelse=orelse, is_still=still))
        elif type(effect) is fx.Repeat:
            inner = _kept(effect.effects, is_idle)
            if inner or effect.over.refs:
                found.append(replace(effect, effects=inner, is_still=all(map(_is_still, inner))))
        elif not is_idle(effect):
            found.append(effect)
    return found


_STILL = fx.TAKEN_DOWN | {fx.Note, fx.Slotted}


def _is_still(effect: Effect) -> bool:
    """Does an effect leave the state as it is?"""
    return effect.is_still if isinstance(effect, fx.Fork | fx.Repeat) else type(effect) in _STILL


def _is_known_by_its_write(effect: Effect) -> bool:
    """Is it a graph in a slot of what a caller gave? The write to that has been logged."""
    return type(effect) is fx.Slotted and effect.slot.holder.symbolic


def _is_of_its_own(effect: Effect, wanted: _Wanted) -> bool:
    """Is it an object that a caller never sees?"""
    return type(effect) is fx.Renew and type(effect.made) is Object and effect.made not in wanted.refs


_CALLBACKS = frozenset({Kind.PARTIAL, Kind.GUARDED})


def _escapes(effects: list[Effect], end: State) -> bool:
    """Are functions that close over what the function made handed to what is not known?

    What those do then happens where the effects are performed: between the function's own operations, not after them.
    """
    given: list[Value] = []
    for effect in fx.each(effects):
        if isinstance(effect, fx.Register):
            given.append(effect.hook)
        elif isinstance(effect, fx.Invoke | fx.InvokeMethod):
            given += effect.arguments.all()
    return any(_sees(end, r) for value in given for r in value.refs)


def _sees(end: State, reference: Ref) -> bool:
    """Is it a function, or an object that is called, that sees what the function made?"""
    if type(reference) is Code:
        return type(reference.frame) is Object
    if type(reference) is Bound:
        return type(reference.receiver) is Object
    if type(reference) is not Object:
        return False
    if reference.kind in _CALLBACKS:
        held = [r for value in end.heap.edges(reference).values() for r in value.refs]
        return any(_sees(end, r) or (type(r) is Object and r.kind in FILLED) for r in held)
    return reference.kind is Kind.INSTANCE and "__call__" in reference.about.cls.methods


def _edges(end: State, wanted: _Wanted) -> list[tuple[Ref, Key, Value]]:
    edges: list[tuple[Ref, Key, Value]] = []
    done: set[Ref] = set()
    while len(edges) < EDGE_LIMIT:
        holders = [r for r in wanted.made if r not in done]
        if not holders:
            break
        for holder in holders:
            done.add(holder)
            for key, value in end.heap.edges(holder).items():
                edges.append((holder, key, value))
                wanted.key(key)
                wanted.value(value)
    return edges


class _Wanted:
    """The references that a caller can see, with the sources that they come from."""

    def __init__(self, frame: Frame) -> None:
        self.refs: dict[Ref, None] = {}
        self.made: dict[Ref, None] = {}
        self.derived: dict[Source, None] = {}
        self.parents = frame.provenance.parents

    def value(self, value: Value | None) -> None:
        if value is None:
            return
        for r in value.each():
            self.reference(r)
        for s in value.graph:
            self.reference(s)

    def references(self, refs: Iterable[Ref]) -> None:
        for r in refs:
            self.reference(r)

    def reference(self, r: Ref) -> None:
        if r in self.refs:
            return
        self.refs[r] = None
        if type(r) is Object:
            self.made[r] = None
            self.key(r.about)
        elif type(r) in (Code, ClassRef) and not is_outside(r):  # else what is written to it has been logged
            self.made[r] = None  # functions have attributes and defaults, classes have members
        for part in _PARTS.get(type(r), ()):
            self.key(getattr(r, part))
        known = self.parents.get(r)
        if known is not None:
            self.derived[r] = None
            for parent in list(known):
                self.reference(parent)

    def key(self, key: object) -> None:
        if isinstance(key, Ref):
            self.reference(key)

    def arguments(self, arguments: Arguments) -> None:
        for value in arguments.all():
            self.value(value)

    def effects(self, effects: list[Effect]) -> None:
        for effect in effects:
            for name, note in _FIELDS.get(type(effect), ()):
                note(self, getattr(effect, name))

    def held(self, held: tuple[tuple[str, frozenset[Source]], ...]) -> None:
        for _, sources in held:
            self.references(sources)


# The fields of references that are references, or keys, which may be some.
_PARTS: dict[type[Ref], tuple[str, ...]] = {
    Behind: ("base", "key"),
    **dict.fromkeys((Code, ClassRef), ("frame",)),
    Bound: ("code", "receiver"),
    **dict.fromkeys((Method, SuperRef), ("receiver",)),
    Parameters: ("module",),
    Part: ("whole",),
    Phi: ("key", "holder"),
    Slot: ("holder", "key"),
}

# By the type of an effect's field: what of it a caller can see. That an object begins anew is no reason to see it.
_SEEN: dict[str, Callable[[_Wanted, Any], None]] = {
    "Value": _Wanted.value,
    "Arguments": _Wanted.arguments,
    "Key": _Wanted.key,
    "Key | None": _Wanted.key,
    "Ref": _Wanted.reference,
    "Source": _Wanted.reference,
    "Phi": _Wanted.reference,
    "Slot": _Wanted.reference,
    "frozenset[Source]": _Wanted.references,
    "tuple[tuple[str, frozenset[Source]], ...]": _Wanted.held,
    "list[Effect]": _Wanted.effects,
}


_FIELDS = {
    kind: [(field.name, _SEEN[str(field.type)]) for field in fields(kind) if field.type in _SEEN]
    for kind in Effect.__subclasses__()
    if kind is not fx.Renew
}
