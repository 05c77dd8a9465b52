"""Storing: what code with a graph leaves where other code finds it, and what it needs gradients for by itself.

Without gradients it would leave something else there, or fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import HOLDERS, contained, reached
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.refs import Behind, Object, Point, Ref, Result, Source, root
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run, callee
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Return, Yield
from torchmemlint.flow.ir.defuse import DefUse, definitions
from torchmemlint.flow.ir.ops import CallMethod, Function, GetAttribute, GetItem, SetAttribute, SetItem, Unit

_FILLING = frozenset("add append appendleft extend insert put update".split())


class Store(NamedTuple):
    """Where something is stored; `names`: of the attributes of the holder."""

    point: Point
    names: frozenset[str]  # none: others may hold it under any


def stored(run: Run) -> Iterator[tuple[Store, frozenset[Source]]]:
    """Yield all that a run stores, with what it is."""
    for slotted in run.effects(fx.Slotted):
        slot = slotted.slot
        yield Store(slotted.point, _named(slot.key)), slotted.sources
    for put in run.effects(fx.Put):
        yield Store(put.point, put.names), put.sources
    for write in run.effects(fx.Write):
        holder = write.holder
        item = write.item or not isinstance(write.key, str)
        attribute = holder.key if item and type(holder) is Behind else write.key
        sources = reached(run.state, write.value, HOLDERS)
        yield Store(write.point, _named(attribute)), sources


def _named(key: object) -> frozenset[str]:
    return frozenset({key}) if isinstance(key, str) else frozenset()


def _made(holder: Ref) -> Point | None:
    """Return where an object was made; what is behind the result of a call, by that."""
    begin = root(holder)
    return Point(begin.site, begin.context) if isinstance(begin, Object | Result) else None


def needing(run: Run, evidence: Evidence) -> Iterator[Point]:
    """Yield where a run differentiates, asks for a gradient, or hands a network to code that may do so unseen."""
    yield from (event.effect.point for event in run.of(fx.Differentiate))
    yield from (read.point for read in run.effects(fx.Read) if read.reading is Reading.HOOKED)
    yield from _taught(run, evidence)
    yield from (call.point for call in teaching(run, evidence))


def _taught(run: Run, evidence: Evidence) -> Iterator[Point]:
    for use in run.effects(fx.Use):
        if use.evidence is fx.Evidence.TAUGHT and evidence.is_network(use.reference):
            yield use.point


def teaching(run: Run, evidence: Evidence) -> Iterator[fx.Invoke | fx.InvokeMethod]:
    """Yield the calls of code out of view that may differentiate: what is given a network, or what such a call gave."""
    holding: set[Ref | Point] = set(_taught(run, evidence))  # what was given a network, by where it was made or itself
    for call in run.unseen():
        given = contained(run.state, call.arguments.all())
        called = callee(call)
        holds = {root(r) for r in (*given, *called)} | {made for r in called if (made := _made(r)) is not None}
        if not holds.isdisjoint(holding) or any(map(evidence.is_network, given)):
            holding.add(call.result)
            yield call


class Readers:
    """Which attributes are read, other than to fill what they hold."""

    def __init__(self, units: Iterable[Unit], elsewhere: Set[str]) -> None:
        self._units = list(units)
        self._elsewhere = elsewhere  # what code mentions that was not run here
        self._reads: dict[Function, dict[str, list[GetAttribute]]] = {}

    def may_read(self, store: Store) -> bool:
        """May code read what is stored, other than the function that stores it, after it did?"""
        return not store.names or any(self._is_read(name, store.point) for name in store.names)

    def _is_read(self, name: str, point: Point) -> bool:
        if name in self._elsewhere:
            return True
        op = point.chain()[0]
        always = any(op is one for one in op.owner.body)
        return any(
            read.owner is not op.owner or not always or read.span[0] <= op.span[0]
            for unit in dict.fromkeys((*self._units, op.owner.unit))
            for read in self._in(unit, name)
        )

    def _in(self, unit: Unit, name: str) -> Iterator[GetAttribute]:
        for function in unit.functions:
            if name in function.mentions:
                if function not in self._reads:
                    self._reads[function] = _reads(function)
                yield from self._reads[function].get(name, ())


def _reads(function: Function) -> dict[str, list[GetAttribute]]:
    """Where a function reads attributes, by name, for more than to fill what they hold."""
    ops = list(operations(function.body))
    found: dict[str, list[GetAttribute]] = {}
    filled = {op.base for op in ops if isinstance(op, SetItem) or (isinstance(op, CallMethod) and op.name in _FILLING)}
    for op in ops:
        if type(op) is GetAttribute and op.dst not in filled:
            found.setdefault(op.name, []).append(op)
    return found


# What a function stores and hands out again: `self.last = h`, then `return self.last + x`.


def is_handed_out(store: object) -> bool:
    """Does the function that stores something also return what the place holds? Its callers get it, then."""
    if not isinstance(store, SetAttribute | SetItem):
        return False
    flow = definitions(store.owner)
    place = _place(flow, store)
    if not place:
        return False
    given = [op.src for op in operations(store.owner.body) if isinstance(op, Return | Yield)]
    return any(isinstance(op, GetAttribute | GetItem) and _place(flow, op) == place for op in flow.origins(*given))


def _place(flow: DefUse, op: SetAttribute | SetItem | GetAttribute | GetItem) -> str:
    base = flow.path(op.base)
    if not base:
        return ""
    return f"{base}.{op.name}" if isinstance(op, SetAttribute | GetAttribute) else f"{base}[]"
