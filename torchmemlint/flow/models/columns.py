"""Columns: rows of which `zip(*rows)` makes one item for each place in them, as replay buffers hand out a batch."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import ELEMENT, State
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Object, Point
from torchmemlint.flow.domain.values import NOTHING, Value, join, of

COLUMNS = "columns"  # what a lazy iterator of them is about


def column(state: State, columns: Object, number: int | str, held: Value) -> Value:
    """Return what holds one item of each row."""
    box = Object.of(Kind.TUPLE, columns.site, columns.context, f"column {number}")
    state.heap.drop(box)
    state.heap.put(box, ELEMENT, held)
    return of(box)


def nth(frame: Frame, state: State, source: Value, number: int, point: Point) -> Value:
    """Return one of the items that a lazy iterator is unpacked to which `turns_round`: the place counts."""
    found = NOTHING
    for holder in source.each():
        assert type(holder) is Object
        if holder.about == COLUMNS:
            held = frame.machine.item(frame, state, part(state, holder, 0), number, point)
            found = join(found, column(state, holder, number, held))
        else:
            given = Arguments([nth(frame, state, part(state, holder, 1), number, point)])
            found = join(found, frame.machine.call(frame, state, part(state, holder, 0), given, point))
    return found


def turns_round(state: State, source: Value) -> bool:
    """Is it rows turned into columns, or what one function makes of these?"""
    for holder in source.each():
        if type(holder) is not Object or holder.kind is not Kind.LAZY:
            return False
        mapped = holder.about == "map" and part(state, holder, 2) is NOTHING
        if holder.about != COLUMNS and not (mapped and turns_round(state, part(state, holder, 1))):
            return False
    return bool(source.refs)


def part(state: State, holder: Object, number: int) -> Value:
    """Return what a lazy iterator makes its items from: of columns, first one of the rows."""
    return state.heap.get(holder, ("part", number)) or NOTHING
