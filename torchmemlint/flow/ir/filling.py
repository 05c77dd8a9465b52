"""Places that are filled once: a number that they hold decides whether they are filled, and decides otherwise then."""

from __future__ import annotations

from collections.abc import Iterator

from .blocks import layout_of, operations
from .control import If
from .counting import Site
from .defuse import DefUse, definitions
from .ops import Bind, Choose, Compare, GetAttribute, GetItem, Load, Op, SetAttribute, SetItem
from .places import ComputedKey, ConstantKey, Key, Temp
from .reaching import reaching

_NUMBERS = frozenset({"<", "<=", ">", ">=", "=="})
_Shape = tuple[object, ...]


def is_filled_once(op: Site) -> bool:
    """Is something stored where a number that is there asks for it: `if box[2] < 0: box[2] = x.mean()`?

    Not what is made from what is there: a sum goes on until the test fails.
    """
    if not isinstance(op, SetItem | SetAttribute):
        return False
    known = definitions(op.owner)
    place = _shape(known, op)
    if place is None or place in _read(known, op.src):
        return False
    for around, block in layout_of(op.owner).above(op):
        if not isinstance(around, If) or block is not around.then or not _is_number(known, around.test):
            continue
        if place in _read(known, around.test):
            return all(_shape(known, other) != place for other in operations(around.orelse))
    return False


def _is_number(known: DefUse, test: Temp) -> bool:
    """Does a test compare numbers?"""
    match known.made.get(test):
        case Compare(operator=operator):
            return operator in _NUMBERS
        case Choose(operator="and", operands=parts):
            return any(_is_number(known, part) for part in parts)
    return False


def _read(known: DefUse, temp: Temp) -> set[_Shape]:
    """Return the places that an expression is computed from, also by way of names."""
    return {shape for op in _behind(known, temp) if (shape := _shape(known, op)) is not None}


def _behind(known: DefUse, temp: Temp) -> Iterator[Op]:
    todo, seen = [temp], {temp}
    while todo:
        for op in known.behind(todo.pop()):
            yield op
            if isinstance(op, Load):
                bound = (one.src for one in reaching(op.owner).at.get(op, ()) if isinstance(one, Bind))
                new = set(bound) - seen
                seen |= new
                todo += new


def _shape(known: DefUse, op: Op) -> _Shape | None:
    """Return which place an operation reads or writes, as it is written."""
    match op:
        case GetItem(base=base, key=key) | SetItem(base=base, key=key):
            return (*known.written(base), *_key(known, key))
        case GetAttribute(base=base, name=name) | SetAttribute(base=base, name=name):
            return (*known.written(base), "attribute", name)
    return None


def _key(known: DefUse, key: Key) -> _Shape:
    match key:
        case ConstantKey(value=value):
            return ("item", value)
        case ComputedKey(temp=temp):
            return ("items", *known.written(temp))
    return ("part", key)
