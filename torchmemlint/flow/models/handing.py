"""Objects that code which is not seen has: it may call their methods, and what they hold is not known from then on."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow.domain.effects import Load
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import BOXES, State, contained, visible
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Bound, Key, Object, Point, Ref, Result
from torchmemlint.flow.domain.values import LIMIT, NONE, PLAIN, Value, join, of, symbol
from torchmemlint.flow.ir.control import For
from torchmemlint.flow.ir.defuse import DefUse, definitions
from torchmemlint.flow.ir.ops import CallMethod, GetAttribute, GetItem, Op
from torchmemlint.flow.ir.places import Temp

FILLED = BOXES | {Kind.INSTANCE}
"""What code that is given it may put something into."""


def hand_over(state: State, given: Iterable[Value]) -> None:
    """Note that code which is not seen is given these values, objects of the project among them."""
    for value in given:
        for r in value.refs:
            if type(r) is Bound:
                r = r.receiver
            if type(r) is Object and r.kind is Kind.INSTANCE and state.heap.get(r, Special.HANDED) is None:
                state.heap.put(r, Special.HANDED, PLAIN)


def read(frame: Frame, state: State, holder: Object, name: str, own: Value, point: Point) -> Value:
    """Return an attribute of an object that such code has: what stands there, or what it may have put there since."""
    if not _may_be_filled(frame, state, holder, name, own):
        return own
    known = sorted(own.refs, key=lambda r: (type(r) is Object and r.older, r.serial))[: LIMIT - 1]
    kept = Value(frozenset(known), own.graph, own.constant, own.open)
    return join(kept, asked(frame, state, of(holder), name, False, point, holder))


def asked(
    frame: Frame, state: State, base: Value, key: Key, item: bool, point: Point, holder: Ref | None = None
) -> Value:
    """Return what is read where only a caller knows it; if the holder is an object, what code put there unseen."""
    result = Result.of(point.site, point.context, holder)
    frame.arise(result)
    frame.log(Load(point, key, base, item, state.mode, result))
    return symbol(result)


def hand_over_in(frame: Frame, state: State, target: Value, given: list[Value], point: Point) -> None:
    """Note the same of a call, and whether the function looks later into what it made and gives here."""
    hand_over(state, given)
    frame.reads_back = frame.reads_back or _is_read_back(frame, state, target, given, point)


def _is_read_back(frame: Frame, state: State, target: Value, given: Iterable[Value], point: Point) -> bool:
    """Does a function look into what it made, after a call of what its caller may know has had it?

    What that call puts into it comes before, so a caller has to run the function itself.
    """
    if frame.entry or not any(r.symbolic for r in target.refs):
        return False
    made = {r for value in given for r in value.refs if type(r) is Object and r.kind in FILLED and not r.older}
    if not made:
        return False
    flow = definitions(frame.function)
    names = [name for name, held in state.variables.items() if not made.isdisjoint(held.refs)]
    loads = (load for name in names for load in flow.loads.get(name, ()) if load.span > point.site.span)
    return any(_looks_into(flow, op, load.dst) for load in loads for op in flow.following(load))


def _looks_into(flow: DefUse, op: Op, held: Temp) -> bool:
    """Is something read from an object here, by the function itself or by a function of Python or a library?"""
    match op:
        case GetItem(base=base) | GetAttribute(base=base) | For(source=base):
            return base == held
        case CallMethod(base=base) if base == held:
            return True
    return flow.called(op) != ""


def _may_be_filled(frame: Frame, state: State, holder: Object, name: str, own: Value) -> bool:
    """Does an attribute hold nothing, in so far as that was seen, and may a method of its object have filled it?

    Such a method is one that is not running, and no constructor.
    """
    if own.graph or not (own == NONE or _is_empty(state, own)):
        return False
    running = {frame.function, *frame.machine.active}
    return any(
        name in method.mentions and method.name != "__init__" and method not in running
        for cls in frame.machine.index.order(holder.about.cls)
        for method in cls.methods.values()
    )


def _is_empty(state: State, value: Value) -> bool:
    """Is it a container in which nothing is but containers?"""
    held = contained(state, [value])
    if not held or not all(type(r) is Object and r.kind in BOXES for r in held):
        return False
    return all(one.refs for r in held for _, one in visible(state.heap.edges(r)))
