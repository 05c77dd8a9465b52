"""Escaping: whether a module that is built may also be used where that is not seen."""

from __future__ import annotations

from torchmemlint.flow.fact.layers import LISTS, SEQUENTIAL, Builders
from torchmemlint.flow.fact.reading import GROWING, Building, Reading
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import Check, For, If
from torchmemlint.flow.ir.ops import Class, Op
from torchmemlint.flow.ir.places import Name, Scope, Temp
from torchmemlint.knowledge.behaviour import RETURNS_ITSELF

_TAKING = frozenset("children named_children enumerate list tuple zip iter reversed".split())  # one by one
_HOLDING = frozenset({SEQUENTIAL, "collections.OrderedDict"}) | LISTS


def escapes(builders: Builders, made: Building) -> bool:
    """May a module be used elsewhere than where its class, or the Sequential that it is put into, uses it?"""
    return _Search(builders).leaves(builders.reading(made.owner), made.dst)


def is_taken_apart(builders: Builders, made: Building) -> bool:
    """Are the parts of a Sequential taken one by one, so that what comes between them may be kept?"""
    return _Parts(builders).leaves(builders.reading(made.owner), made.dst)


class _Search:
    def __init__(self, builders: Builders) -> None:
        self._builders = builders
        self._seen: set[tuple[Reading, Temp]] = set()

    def leaves(self, reading: Reading, temp: Temp) -> bool:
        """Does what a temporary holds get to code that is not seen?"""
        if (reading, temp) in self._seen:
            return False
        self._seen.add((reading, temp))
        return any(self._by(reading, temp, op) for op in reading.taken.get(temp, ()))

    def _by(self, reading: Reading, temp: Temp, op: Op) -> bool:
        """Does an operation that takes it let it out?"""
        match op:
            case ops.Bind(name=name):
                if name.scope is Scope.GLOBAL or name.text in reading.function.shared:
                    return True
                return self._named(reading, name.text)
            case ops.Operate(place=Name(text=text)):
                return self._named(reading, text)
            case (
                ops.Move(dst=dst)
                | ops.Choose(dst=dst)
                | ops.Make(dst=dst)
                | ops.Operate(dst=dst)
                | ops.Collect(box=dst)
            ):
                return self.leaves(reading, dst)
            case ops.SetAttribute(base=base, name=name) if base != temp and reading.is_self(base):
                return reading.cls is None or self._attribute(reading.cls, name)
            case If() | ops.Compare() | Check():
                return False
            case ops.Call() | ops.CallMethod():
                return self._call(reading, temp, op)
        return True

    def _call(self, reading: Reading, temp: Temp, op: Building) -> bool:
        if isinstance(op, ops.Call) and op.callee == temp:
            return False
        name = reading.called(op)
        if isinstance(op, ops.CallMethod) and op.base == temp:
            return self.leaves(reading, op.dst) if op.name in RETURNS_ITSELF else op.name not in GROWING
        if name in self._builders.index.contracts.names("wrappers"):
            return self.leaves(reading, op.dst)
        is_base = isinstance(op, ops.CallMethod) and isinstance(reading.made.get(op.base), ops.Super)
        is_put = isinstance(op, ops.CallMethod) and op.name in GROWING
        return not (name in _HOLDING or is_base or is_put)

    def _named(self, reading: Reading, text: str) -> bool:
        return any(self.leaves(reading, load.dst) for load in reading.loads.get(text, ()))

    def _attribute(self, cls: Class, name: str) -> bool:
        for base in self._builders.index.order(cls):
            for method in base.methods.values():
                if name in method.mentions:
                    reading = self._builders.reading(method)
                    for temp, op in reading.made.items():
                        if isinstance(op, ops.GetAttribute) and op.name == name and self.leaves(reading, temp):
                            return True
        return False


class _Parts(_Search):
    """Looks for what takes parts out of a Sequential."""

    def _by(self, reading: Reading, temp: Temp, op: Op) -> bool:
        match op:
            case For(source=taken) | ops.GetItem(base=taken):
                return taken == temp
            case ops.GetAttribute(name=name):
                return name == "_modules"
            case ops.Bind(name=name):
                return self._named(reading, name.text)
            case ops.CallMethod(base=base, name=name) if base == temp:
                return name in _TAKING
            case ops.Call():
                return op.callee != temp and reading.called(op) in _TAKING
            case ops.Move() | ops.Choose() | ops.SetAttribute():
                return super()._by(reading, temp, op)
        return False
