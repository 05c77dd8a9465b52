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
    """Return one of the items that a lazy iterator is unpacked to: its place counts where it turns rows round."""
    found = NOTHING
    for holder in source.each():
        if type(holder) is Object and holder.about == COLUMNS:
            held = frame.machine.item(frame, state, row_of(state, holder), number, point)
            found = join(found, column(state, holder, number, held))
        elif type(holder) is Object and holder.about == "map" and (rows := state.heap.get(holder, ("part", 1))):
            given = Arguments([nth(frame, state, rows, number, point)])
            function = state.heap.get(holder, ("part", 0)) or NOTHING
            found = join(found, frame.machine.call(frame, state, function, given, point))
        else:
            found = join(found, frame.machine.iterate(frame, state, of(holder), point))
    return found


def turns_round(state: State, source: Value) -> bool:
    """Is it rows turned into columns, or what one function makes of these?"""
    for holder in source.each():
        if type(holder) is not Object or holder.kind is not Kind.LAZY:
            return False
        rows, more = (state.heap.get(holder, ("part", number)) for number in (1, 2))
        mapped = holder.about == "map" and rows is not None and more is None and turns_round(state, rows)
        if holder.about != COLUMNS and not mapped:
            return False
    return bool(source.refs)


def row_of(state: State, columns: Object) -> Value:
    """Return one of the rows that are turned round."""
    return state.heap.get(columns, ("part", 0)) or NOTHING
