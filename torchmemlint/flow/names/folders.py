"""The folders in which a file lets Python look for modules: what it adds to `sys.path`.

Paths are computed as far as they are made of what is written out, of `__file__` and of what `os.path` and `pathlib` do
with it. Conditions and order do not count: a name stands for all that it is bound to, and a parameter for all that the
file gives it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import For, Return
from torchmemlint.flow.ir.defuse import DefUse
from torchmemlint.flow.ir.ops import (
    Call,
    CallMethod,
    Choose,
    Constant,
    Function,
    GetAttribute,
    GetItem,
    Import,
    Load,
    Make,
    Op,
    Operate,
    Parameter,
    Passing,
    SetAttribute,
    SetItem,
    Unit,
)
from torchmemlint.flow.ir.places import Argument, ConstantKey, Name, Scope, Spread, Temp

CHANGED = "sys.path"

_CONSTANTS = {"os.curdir": ".", "os.pardir": "..", "os.path.curdir": ".", "os.path.pardir": ".."}
_HERE = frozenset({"os.getcwd", "pathlib.Path.cwd"})
_JOINING = frozenset({"os.path.join", "pathlib.Path", "pathlib.PurePath"})
_KEEPING = frozenset({"str", "os.fspath", *(f"os.path.{name}" for name in ("abspath", "realpath", "normpath"))})
_KEEPING_METHODS = frozenset({"resolve", "absolute", "as_posix"})
_MOST = 16  # paths that one expression stands for, and things that a name does
_LONGEST = 1_000  # characters

_Texts = frozenset[str]


def added(unit: Unit, path: Path) -> _Texts:
    """The folders that a file adds to `sys.path`, as far as they are seen; relative ones as they are written."""
    reading = _Reading(unit, path)
    try:
        return frozenset(folder for function in reading.known for folder in reading.added_in(function))
    except RecursionError:  # a path of a thousand steps
        return frozenset()


class _Reading:
    """What the expressions of a file stand for as paths."""

    def __init__(self, unit: Unit, path: Path) -> None:
        self.known = {function: DefUse(function) for function in unit.functions}
        self._unit, self._path = unit, str(path)
        self._items: dict[tuple[Function, Temp], Temp] = {}  # of loops: what they are taken from
        self._given: dict[Function, list[tuple[Function, tuple[Argument, ...]]]] = {}  # by the calls in the file
        self._found: dict[tuple[Function, Temp, bool], _Texts] = {}
        for function in self.known:
            for op in operations(function.body):
                if isinstance(op, For):
                    self._items[function, op.item] = op.source
                elif isinstance(op, Call) and (called := self._own(op.callee, function)) is not None:
                    self._given.setdefault(called, []).append((function, op.arguments))

    def added_in(self, function: Function) -> Iterator[str]:
        """Yield what the operations of a function add."""
        for op in operations(function.body):
            match op:
                case CallMethod(base=base, name="append" | "insert" | "extend" as way, arguments=[*_, given]):
                    if self._name(base, function) == CHANGED:
                        yield from (self._all if way == "extend" else self._one)(given.temp, function)
                case SetItem(base=base, src=src) if self._name(base, function) == CHANGED:
                    yield from self._one(src, function) | self._all(src, function)
                case SetAttribute(base=base, name="path", src=src) if self._name(base, function) == "sys":
                    yield from self._all(src, function)
                case Operate(operator="+", operands=(base, src)) if self._name(base, function) == CHANGED:
                    yield from self._all(src, function)

    def _own(self, temp: Temp, function: Function) -> Function | None:
        """The function of the file that is loaded."""
        op = self.known[function].made.get(temp)
        found = self._unit.once.get(op.name.text) if isinstance(op, Load) and op.name.scope is Scope.GLOBAL else None
        return found if isinstance(found, Function) else None

    def _name(self, temp: Temp, function: Function) -> str:
        """What is imported, or built in, by its qualified name; empty for others."""
        match self.known[function].made.get(temp):
            case Import(qualified=qualified, relative=0):
                return qualified
            case GetAttribute(base=base, name=attribute) if whole := self._name(base, function):
                return f"{whole}.{attribute}"
            case Load(name=name) if name.scope is Scope.BUILTIN:
                return name.text
            case Load(name=name) if name.scope is Scope.GLOBAL:
                return self._unit.imports.get(name.text, "")
            case Load(name=name):
                return next((q for f, one in self._bound(name, function) if (q := self._name(one, f))), "")
        return ""

    def _bound(self, name: Name, function: Function) -> Iterator[tuple[Function, Temp]]:
        """What a name is bound to, and where."""
        owner: Function | None = self._unit.module if name.scope is Scope.GLOBAL else function
        while owner is not None and name.text not in owner.bound:
            owner = owner.parent
        if owner is not None:
            yield from ((owner, temp) for temp in self.known[owner].bound.get(name.text, ())[:_MOST])
            for place, parameter in enumerate(owner.parameters):
                if parameter.name == name.text:
                    yield from self._arguments(owner, place, parameter)

    def _arguments(self, called: Function, place: int, parameter: Parameter) -> Iterator[tuple[Function, Temp]]:
        for caller, arguments in self._given.get(called, ()):
            for number, one in enumerate(arguments):
                rest = parameter.passing is Passing.STAR and number >= place
                if one.name == parameter.name or (one.spread is Spread.PLAIN and (number == place or rest)):
                    yield caller, one.temp

    def _one(self, temp: Temp, function: Function) -> _Texts:
        """The paths that an expression stands for."""
        return self._once(temp, function, of_items=False)

    def _all(self, temp: Temp, function: Function) -> _Texts:
        """The paths that the items of an expression stand for."""
        return self._once(temp, function, of_items=True)

    def _once(self, temp: Temp, function: Function, *, of_items: bool) -> _Texts:
        key = (function, temp, of_items)
        if key not in self._found:
            self._found[key] = frozenset()  # of what is made of itself
            found = self._each(temp, function) if of_items else self._value(temp, function)
            self._found[key] = frozenset(itertools.islice(sorted({one for one in found if len(one) < _LONGEST}), _MOST))
        return self._found[key]

    def _each(self, temp: Temp, function: Function) -> Iterable[str]:
        match self.known[function].made.get(temp):
            case Make(entries=entries):
                read = (self._all if e.spread is Spread.STAR else self._one for e in entries)
                return [text for one, entry in zip(read, entries, strict=True) for text in one(entry.temp, function)]
            case Load(name=name):
                return [text for f, one in self._bound(name, function) for text in self._all(one, f)]
            case Operate(operator="+", operands=operands):
                return [text for one in operands for text in self._all(one, function)]
        return ()

    def _value(self, temp: Temp, function: Function) -> Iterable[str]:
        if (source := self._items.get((function, temp))) is not None:
            return self._all(source, function)
        op = self.known[function].made.get(temp)
        match op:
            case Constant(value=str() as text):
                return (text,)
            case Load(name=name) if name.text == "__file__":
                return (self._path,)
            case Load(name=name):
                return [text for f, one in self._bound(name, function) for text in self._one(one, f)]
            case Choose(operands=operands):
                return [text for one in operands for text in self._one(one, function)]
            case Operate(operator="+" | "/" as sign, operands=(first, second)):
                if sign == "/":
                    return self._joined([first, second], function)
                return map("".join, itertools.product(self._one(first, function), self._one(second, function)))
            case GetAttribute(base=base, name="parent"):
                return map(_above, self._one(base, function))
            case GetAttribute() if constant := _CONSTANTS.get(self._name(temp, function)):
                return (constant,)
            case GetItem(base=base, key=ConstantKey(value=int() as number)):
                return self._item(base, number, function)
            case Call() | CallMethod():
                return self._result(op, function)
        return ()

    def _item(self, base: Temp, number: int, function: Function) -> Iterable[str]:
        """An item of a path's parents, or of what `os.path.split` gives."""
        match self.known[function].made.get(base):
            case GetAttribute(base=inner, name="parents"):
                found: Iterable[str] = self._one(inner, function)
                for _ in range(min(number, _MOST) + 1):
                    found = map(_above, found)
                return found
            case CallMethod(arguments=[Argument(temp=inner)]) as op if number == 0:
                if self._called(op, function) == "os.path.split":
                    return map(_above, self._one(inner, function))
        return ()

    def _called(self, op: Op, function: Function) -> str:
        if isinstance(op, Call):
            return self._name(op.callee, function)
        owner = self._name(op.base, function) if isinstance(op, CallMethod) else ""
        return f"{owner}.{op.name}" if isinstance(op, CallMethod) and owner else ""

    def _result(self, op: Call | CallMethod, function: Function) -> Iterable[str]:
        called, given = self._called(op, function), [one.temp for one in op.arguments]
        if called in _HERE:
            return (os.curdir,)
        if called in _JOINING:
            return self._joined(given, function)
        if called == "os.path.dirname" and given:
            return map(_above, self._one(given[0], function))
        if called in _KEEPING and given:
            return self._one(given[0], function)
        if isinstance(op, CallMethod) and op.name in _KEEPING_METHODS:
            return self._one(op.base, function)
        if isinstance(op, CallMethod) and op.name == "joinpath":
            return self._joined([op.base, *given], function)
        own = self._own(op.callee, function) if isinstance(op, Call) else None
        returned = (r for r in operations(own.body) if isinstance(r, Return)) if own is not None else ()
        return [text for r in returned if own is not None for text in self._one(r.src, own)]

    def _joined(self, parts: list[Temp], function: Function) -> Iterable[str]:
        every = itertools.product(*(self._one(temp, function) for temp in parts))
        return [str(Path(*texts)) for texts in itertools.islice(every, _MOST)]


def _above(path: str) -> str:
    """What lies above a path. Above one that leads up is one further up."""
    whole = Path(os.path.normpath(path))
    return str(whole / os.pardir if whole.name in {"", os.pardir} else whole.parent)
