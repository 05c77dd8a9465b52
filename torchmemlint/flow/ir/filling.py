"""Filling: what loops put under keys and numbers, where that is no more than one pass of them puts there.

A place may be filled once, as a number that it holds decides. Keys may be counted, the same ones each time. And a loop
may write the entries of a list by number, and read none that an earlier pass left there.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from .blocks import layout_of, operations
from .control import For, If
from .defuse import DefUse, definitions, operands
from .ops import (
    Bind,
    Call,
    Choose,
    Class,
    Compare,
    Constant,
    Format,
    Function,
    GetAttribute,
    GetItem,
    Load,
    Make,
    Op,
    Operate,
    SetAttribute,
    SetItem,
    Unpack,
)
from .places import ComputedKey, ConstantKey, Key, Temp
from .reaching import reaching

Site = Op | Function | Class
_TEXTS = frozenset({"str", "int", "repr", "format"})
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


def is_refilled(site: object) -> bool:
    """Does `xs[n] = ...` stand in a loop over `n` after which no entry is read that was there before the loop?

    What a list keeps is known as a whole, and not which entry is the one of before. Here the numbers tell: entry `n` is
    computed of entry `n - 1`. The loop has written that just before, and no pass writes the first one.
    """
    if not isinstance(site, SetItem) or not isinstance(site.key, ComputedKey):
        return False
    flow, layout = definitions(site.owner), layout_of(site.owner)
    written, variable = flow.path(site.base), _name(flow, site.key.temp)
    loop = next((one for one in layout.loops(site) if isinstance(one, For)), None)
    if not written or not variable or loop is None or flow.bound.get(variable) != [loop.item]:
        return False
    first, inside = _first(flow, loop), set(operations(loop.body))
    for op in flow.taken:
        for taking in flow.taken[op] if flow.path(op) == written else ():
            if isinstance(taking, SetItem) and taking.base == op and taking.src != op:
                continue
            if taking not in inside:
                if layout.order[taking] < layout.order[loop]:
                    return False  # it takes up what is there before
            elif not isinstance(taking, GetItem) or not isinstance(taking.key, ComputedKey):
                return False
            elif _name(flow, taking.key.temp) == variable:
                if layout.order[taking] < layout.order[site] or id(layout.home(site)) not in layout.around(taking):
                    return False
            elif not 0 < _back(flow, taking.key.temp, variable) <= first:
                return False
    return True


def _name(flow: DefUse, temp: Temp) -> str:
    """Return the local name that is loaded; "" for anything else."""
    op = flow.made.get(temp)
    return op.name.text if isinstance(op, Load) else ""


def _first(flow: DefUse, loop: For) -> int:
    """Return the first number of `for n in range(first, ...)`; 0 where it is not written down."""
    call = flow.made.get(loop.source)
    if isinstance(call, Call) and flow.name(call.callee) == "range" and len(call.arguments) == 2:
        number = _number(flow, call.arguments[0].temp)
        return max(number, 0)
    return 0


def _back(flow: DefUse, temp: Temp, variable: str) -> int:
    """Return the 1 of `n - 1`; 0 for other expressions."""
    op = flow.made.get(temp)
    if isinstance(op, Operate) and op.operator == "-" and len(given := list(operands(op))) == 2:
        return _number(flow, given[1]) if _name(flow, given[0]) == variable else 0
    return 0


def _number(flow: DefUse, temp: Temp) -> int:
    op = flow.made.get(temp)
    return op.value if isinstance(op, Constant) and type(op.value) is int else 0


def is_counted_within(op: Site, loop: Site, changing: AbstractSet[str]) -> bool:
    """Does an item have the same keys in each iteration of a loop, because loops within the iteration count them?

    `changing`: the attributes that something assigns to outside of constructors.
    """
    if not isinstance(op, SetItem) or not isinstance(op.key, ComputedKey):
        return False
    counting = _Counting(definitions(op.owner), changing)
    return counting.is_counted(op.key.temp) and loop not in counting.loops


class _Counting:
    """The loops by whose counters an expression is computed."""

    def __init__(self, known: DefUse, changing: AbstractSet[str]) -> None:
        self.loops: set[Op] = set()
        self._known = known
        self._changing = changing

    def is_counted(self, temp: Temp) -> bool:
        """Is an expression computed from counters and constants alone?"""
        op = self._known.made.get(temp)
        match op:
            case Constant():
                return True
            case Load():
                found = reaching(op.owner).at.get(op, frozenset({None}))
                return all(isinstance(one, Bind) and self.is_counted(one.src) for one in found)
            case Operate(operands=parts, place=None) | Format(operands=parts):
                return all(map(self.is_counted, parts))
            case Call(arguments=arguments) if self._known.called(op) in _TEXTS:
                return all(self.is_counted(argument.temp) for argument in arguments)
            case GetAttribute(base=base, name=name):
                return self._known.is_self(base) and name not in self._changing
            case Unpack(targets=targets, src=src):
                return temp == targets[0] and self._is_item(src, "enumerate")
        return self._is_item(temp, "range")

    def _is_item(self, temp: Temp, counter: str) -> bool:
        """Is it what a loop over `range` or `enumerate` counts, from the same number on each time?"""
        loop = self._known.made.get(temp)
        if not isinstance(loop, For):
            return False
        self.loops.add(loop)
        source = self._known.made.get(loop.source)
        match source:
            case Make(entries=entries):
                return counter == "range" and all(self.is_counted(entry.temp) for entry in entries)
            case Call(arguments=arguments) if self._known.called(source) == counter:
                begun = arguments[:1] if counter == "range" and len(arguments) > 1 else arguments[1:]
                return len(arguments) == 1 or all(self.is_counted(one.temp) for one in begun[:1])
        return False
