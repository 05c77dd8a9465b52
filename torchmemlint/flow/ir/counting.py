"""Keys that are counted: the same ones each time that the loops which count them are run again."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from .control import For
from .defuse import DefUse, definitions
from .ops import Bind, Call, Class, Constant, Format, Function, GetAttribute, Load, Make, Op, Operate, SetItem, Unpack
from .places import ComputedKey, Temp
from .reaching import reaching

Site = Op | Function | Class
_TEXTS = frozenset({"str", "int", "repr", "format"})


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
