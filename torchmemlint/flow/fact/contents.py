"""Contents: what the names and attributes of an object's methods hold, and what is put into that.

This is read off definitions and uses, without regard to order: an attribute holds what any method of the class, or of
its bases, assigns to it; a call of the project's code gives what that returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.fact.layers import Builders
from torchmemlint.flow.fact.reading import Reading
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import layout_of, operations
from torchmemlint.flow.ir.control import Enter, For, Yield
from torchmemlint.flow.ir.places import AttributePlace, Scope, SliceKey, Temp
from torchmemlint.immutable import immutable

_ONE = {"add": 0, "append": 0, "appendleft": 0, "insert": 1}  # methods that put one thing in: which argument it is
_SEVERAL = frozenset({"extend", "update"})


@immutable()
class Spot:
    """A temporary of a function."""

    reading: Reading
    temp: Temp

    @property
    def op(self) -> ops.Op | None:
        """What makes it."""
        return self.reading.made.get(self.temp)

    def at(self, temp: Temp) -> Spot:
        """Return another one of the same function."""
        return Spot(self.reading, temp)


@immutable()
class Put:
    """Something that is put into a container."""

    value: Spot
    loops: tuple[Spot, ...]  # what the loops around run over
    spread: bool = False  # is what it holds put in, and not it?


class Contents:
    """What the objects of a class hold."""

    def __init__(self, builders: Builders, cls: ops.Class) -> None:
        self._builders, self._cls = builders, cls
        self._methods = [builders.reading(method) for method in _methods(builders, cls)]
        self._puts: dict[Reading, dict[Spot | None, list[Put]]] = {}
        self._first: dict[ops.Function, Spot] = {}  # what generator expressions run over
        self._unpacking: set[Spot] = set()

    def method(self, name: str) -> Reading | None:
        """Return a method of the class."""
        found = self._builders.index.method(self._cls, name)
        return self._builders.reading(found) if found is not None else None

    def attribute(self, name: str) -> list[Spot]:
        """Return what is assigned to an attribute of the object."""
        return [Spot(reading, temp) for reading in self._methods for temp in _stored(reading, name)]

    def attributes(self) -> list[str]:
        """Return the names of the object's attributes that methods of its class assign."""
        return list(dict.fromkeys(name for reading in self._methods for name in reading.stored))

    def of_instance(self, spot: Spot) -> tuple[ops.Class, Contents] | None:
        """Return the class of the project that a call makes an object of, with what its objects hold."""
        op = spot.op
        name = spot.reading.called(op) if isinstance(op, ops.Call | ops.CallMethod) else ""
        found = self._builders.project(spot.reading.function, name) if name else None
        return (found, Contents(self._builders, found)) if isinstance(found, ops.Class) else None

    def origins(self, spot: Spot, own: bool = False) -> list[Spot]:
        """Return what makes what a temporary may hold; `own`: also what makes that which attributes hold."""
        found, seen, todo = list[Spot](), set[Spot](), [spot]
        while todo:
            one = todo.pop(0)
            if one not in seen:
                seen.add(one)
                sources = self._sources(one, own)
                if sources is None:
                    found.append(one)
                else:
                    todo += sources
        return found

    def _sources(self, spot: Spot, own: bool) -> list[Spot] | None:
        """Return what a temporary only passes on; None where it is made of something else."""
        reading, op = spot.reading, spot.op
        match op:
            case ops.Move():
                return list(map(spot.at, reading.moved[spot.temp]))
            case Enter(context=context):
                return [spot.at(context)]
            case ops.Choose(operands=operands):
                return list(map(spot.at, operands))
            case ops.Load():
                return self._named(reading, op)
            case ops.GetAttribute(base=base, name=name) if own and reading.is_self(base):
                return self.attribute(name) or None
            case ops.Unpack():
                return self._unpacked(spot, op)
            case ops.Call() | ops.CallMethod():
                function = self.callee(reading, op)
                if function is not None and not function.generator:
                    inner = self._builders.reading(function)
                    return [Spot(inner, temp) for temp in inner.returned] or None
        return None

    def _named(self, reading: Reading, op: ops.Load) -> list[Spot] | None:
        text, function = op.name.text, reading.function
        if text == ops.FIRST and function in self._first:
            return [self._first[function]]
        while text not in reading.bound and op.name.scope is not Scope.GLOBAL and reading.function.parent is not None:
            reading = self._builders.reading(reading.function.parent)
        return [Spot(reading, temp) for temp in reading.bound.get(text, ())] or None

    def _unpacked(self, spot: Spot, op: ops.Unpack) -> list[Spot] | None:
        """Return the parts of tuples that are written out."""
        if spot in self._unpacking:
            return []
        self._unpacking.add(spot)
        wholes = self.origins(spot.at(op.src))
        self._unpacking.discard(spot)
        found: list[Spot] = []
        for whole in wholes:
            made = whole.op
            if not isinstance(made, ops.Make) or len(made.entries) != len(op.targets) or op.star >= 0:
                return None
            found.append(whole.at(made.entries[op.targets.index(spot.temp)].temp))
        return found

    def callee(self, reading: Reading, op: ops.Call | ops.CallMethod) -> ops.Function | None:
        """Return the function of the project that a call is of."""
        if isinstance(op, ops.CallMethod) and reading.is_self(op.base):
            return self._builders.index.method(self._cls, op.name)
        if isinstance(op, ops.Call):
            made = reading.made.get(op.callee)
            if isinstance(made, ops.Define) and made.function.generator and op.arguments:
                self._first[made.function] = Spot(reading, op.arguments[0].temp)
                return made.function
        name = reading.called(op)
        found = self._builders.project(reading.function, name) if name else None
        return found if isinstance(found, ops.Function) else None

    def put(self, container: Spot) -> list[Put]:
        """Return what is put into what a temporary makes: a list that is written out, or a generator."""
        op = container.op
        function = self.callee(container.reading, op) if isinstance(op, ops.Call | ops.CallMethod) else None
        readings = dict.fromkeys([container.reading, *self._methods])
        found = [one for reading in readings for one in self._of(reading).get(container, ())]
        return found + (self._of(self._builders.reading(function)).get(None, []) if function is not None else [])

    def _of(self, reading: Reading) -> dict[Spot | None, list[Put]]:
        """Return what a function puts into containers; None: what it yields."""
        if reading not in self._puts:
            table = self._puts[reading] = {}
            for temp, put in _puts(reading):
                for container in self.origins(Spot(reading, temp), own=True) if temp is not None else (None,):
                    table.setdefault(container, []).append(put)
        return self._puts[reading]


def _methods(builders: Builders, cls: ops.Class) -> Iterable[ops.Function]:
    """Return the methods of a class and of its bases, but for those that others replace and do not call."""
    found: dict[str, ops.Function] = {}
    for base in builders.index.order(cls):
        for name, method in base.methods.items():
            if name not in found or not found[name].mentions.isdisjoint({"super", base.name}):
                found[name] = method
                yield method


def _stored(reading: Reading, name: str) -> Iterator[Temp]:
    yield from reading.stored.get(name, ())
    for op in operations(reading.function.body) if name in reading.function.mentions else ():
        match op:
            case ops.Operate(place=AttributePlace(base=base, name=stored)) if stored == name and reading.is_self(base):
                yield op.dst


def _puts(reading: Reading) -> Iterator[tuple[Temp | None, Put]]:
    """Yield what a function puts into containers, with these, and what it yields."""
    layout = layout_of(reading.function)
    container: Temp | None
    for op in operations(reading.function.body):
        match op:
            case ops.Collect(box=container, src=src):
                spread = False
            case Yield(src=src, many=spread):
                container = None
            case ops.SetItem(base=container, key=key, src=src):
                spread = isinstance(key, SliceKey)
            case ops.CallMethod(base=container, name=name, arguments=given) if len(given) > _ONE.get(name, len(given)):
                src, spread = given[_ONE[name]].temp, False
            case ops.CallMethod(base=container, name=name, arguments=(argument,)) if name in _SEVERAL:
                src, spread = argument.temp, True
            case _:
                continue
        loops = (Spot(reading, loop.source) for loop, _ in layout.above(op) if isinstance(loop, For))
        yield container, Put(Spot(reading, src), tuple(loops), spread)
