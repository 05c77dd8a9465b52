"""Numbers: how large a number is at most: as it is written, by the defaults of options, as callers give it.

A name counts for what all assignments to it say; one that is bound in any other way is not known. What is not known is
None, and never taken for small. An option has its default, of which whoever runs the program may say otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import For
from torchmemlint.flow.ir.defuse import DefUse, default_of, definitions
from torchmemlint.flow.ir.places import NO_TEMP, Argument, ConstantKey, Name, Scope, Spread, Temp
from torchmemlint.flow.names.index import FILLING
from torchmemlint.immutable import immutable

DEPTH = 6
_MOST = 8  # values of one name; of more, none is known
_RANGES = frozenset({"torch.arange", "numpy.arange"})
_SPACED = {"torch.linspace": "steps", "torch.logspace": "steps", "numpy.linspace": "num", "numpy.logspace": "num"}
_SAME_LENGTH = frozenset({"tolist", "numpy", "cpu"})


@immutable()
class Definition:
    """What a name is assigned: a value, or an element of what that unpacks to (`index`, of `among`)."""

    value: Temp
    index: int | None = None
    among: int = 1


class Numbers:
    """Asked about the values of one function, or of a file's body."""

    def __init__(
        self,
        function: ops.Function,
        flow: DefUse | None = None,
        calls: Sequence[object] = (),
        others: Collection[ops.Unit] = (),
    ) -> None:
        """`calls` are those that led there, innermost first; `others` are other files that may declare options."""
        self.function, self.flow, self.calls, self._others = function, flow or definitions(function), calls, others

    def definitions(self, name: str) -> list[Definition]:
        """Return all that a name is assigned; nothing where it is bound in another way as well."""
        found = [self._defined(source) for source in self.flow.bound.get(name, ())]
        known = [one for one in found if one is not None]
        return known if len(known) == len(found) and not self._is_parameter(name) else []

    def _defined(self, source: Temp) -> Definition | None:
        """Return what a name is assigned; None where it is changed in place, or bound to what a loop runs over."""
        match self.flow.made.get(source):
            case For() | ops.Operate(place=Name()):
                return None
            case ops.Unpack(src=src, targets=targets, star=star):
                made, number = self.flow.made.get(src), targets.index(source)
                if isinstance(made, For):
                    return None
                if isinstance(made, ops.Make) and star < 0 and len(made.entries) == len(targets):
                    return Definition(made.entries[number].temp)
                return Definition(src, number, len(targets))
        return Definition(source)

    def _is_parameter(self, name: str) -> bool:
        return any(parameter.name == name for parameter in self.function.parameters)

    def at_most(self, size: Temp, depth: int = 0) -> int | None:
        """Return the greatest number that a value may be; None where that is not known."""
        if depth > DEPTH:
            return None
        moved = self.flow.moved.get(size)
        if moved:
            return _greatest([self.at_most(src, depth + 1) for src in moved])
        match self.flow.made.get(size):
            case ops.Constant() as constant:
                return integer(constant)
            case ops.Load(name=name):
                return self._named(name, depth)
            case ops.Call() as call if len(call.arguments) == 1 and self._builtin(call) in ("len", "int"):
                given = call.arguments[0].temp
                return (
                    self._length(given, depth + 1) if self._builtin(call) == "len" else self.at_most(given, depth + 1)
                )
            case ops.Call() as call if call.arguments and self._builtin(call) in ("min", "max"):
                found = [self.at_most(one.temp, depth + 1) if not one.name else None for one in call.arguments]
                known = [number for number in found if number is not None]
                return min(known, default=None) if self._builtin(call) == "min" else _greatest(found)
            case ops.GetAttribute(name=name):
                qualified = self.flow.name(size)
                return self._imported(qualified, depth) if "." in qualified else self._of_attribute(name, depth)
            case ops.GetItem(base=base, key=ConstantKey(value=str(key))):
                return self._of_key(base, key, depth)
            case ops.Operate(operator=operator, operands=[left, right]):
                return _computed(operator, self.at_most(left, depth + 1), self.at_most(right, depth + 1))
        return None

    def view_size(self, size: Temp) -> int | None:
        """Return one size of a view at most: -1, what remains, as it is."""
        made = self.flow.made.get(size)
        if isinstance(made, ops.Operate) and made.operator == "-" and len(made.operands) == 1:
            return -1
        return self.at_most(size)

    def _named(self, name: Name, depth: int) -> int | None:
        if self._is_parameter(name.text) and name.text not in self.flow.bound:
            return self._given(name.text, depth)
        if name.scope is Scope.GLOBAL and name.text in self.function.unit.imports:
            return self._imported(self.function.unit.imports[name.text], depth)
        return self._owner(name)._of_all(name.text, Numbers.at_most, depth)

    def _owner(self, name: Name) -> Numbers:
        """Return where a name is assigned: here, or in the file's body."""
        is_here = name.text in self.flow.bound or self.function.parent is None
        return self if is_here or name.scope is not Scope.GLOBAL else self._of(self.function.unit.module)

    def _imported(self, qualified: str, depth: int) -> int | None:
        """Return what another file, or a class of it, binds a name to."""
        owner, _, name = qualified.lstrip(".").rpartition(".")
        for unit in self._others:
            if unit.name == owner or unit.name.endswith(f".{owner}"):
                return self._of(unit.module)._of_all(name, Numbers.at_most, depth)
        return self._of_attribute(name, depth)

    def _of_key(self, held: Temp, key: str, depth: int) -> int | None:
        """Return what a dict that is written out holds under a key."""
        match self.flow.made.get(held):
            case ops.Make(kind="dict", entries=entries):
                temps = [one.temp for one in entries if isinstance(one.key, ConstantKey) and one.key.value == key]
                return self.at_most(temps[-1], depth + 1) if temps else None
            case ops.Load(name=name) if depth <= DEPTH:
                return self._owner(name)._held(name.text, lambda owner, one, deep: owner._of_key(one, key, deep), depth)
        return None

    def _of_all(self, name: str, ask: Callable[[Numbers, Temp, int], int | None], depth: int) -> int | None:
        found = self.definitions(name)
        if len(found) > _MOST:
            return None
        return _greatest([ask(self, one.value, depth + 1) if one.index is None else None for one in found])

    def _held(self, name: str, ask: Callable[[Numbers, Temp, int], int | None], depth: int) -> int | None:
        """Return what a list or dict says at most; nothing where something is put into it that it is not made with."""
        return None if any(map(_fills, self._uses(name))) else self._of_all(name, ask, depth)

    def _uses(self, name: str) -> Iterator[tuple[Temp, ops.Op]]:
        """Yield what is done with a variable, by functions within this one, too."""
        yield from ((load.dst, op) for load in self.flow.loads.get(name, ()) for op in self.flow.following(load))
        for function in self.function.nested:
            if name in function.mentions and name not in function.bound:
                yield from self._of(function)._uses(name)

    def _given(self, name: str, depth: int) -> int | None:
        """Return what the call that led here gives for a parameter, or its default."""
        call = next((op for op in self.calls if isinstance(op, ops.Call | ops.CallMethod)), None)
        if call is None or call is not self.calls[0]:
            return None
        if any(one.spread in (Spread.STAR, Spread.STARS) for one in call.arguments):
            return None
        temp = actual(call, self.function, name)
        if temp != NO_TEMP:
            return self._of(call.owner, self.calls[1:]).at_most(temp, depth + 1)
        default = default_of(self.function, name)
        return self._of(default[0]).at_most(default[1], depth + 1) if default is not None else None

    def _of_attribute(self, name: str, depth: int) -> int | None:
        """Return the default of an option, or the numbers that a class or its methods give an attribute."""
        own = self._in_unit(self.function.unit, name, depth)
        return _greatest(own or [number for unit in self._others for number in self._in_unit(unit, name, depth)])

    def _in_unit(self, unit: ops.Unit, name: str, depth: int) -> list[int | None]:
        found: list[int | None] = []
        for function in unit.functions:
            if len(found) > _MOST:
                return [None]
            of_class = function.cls is not None and function.cls is self.function.method.cls
            if name not in function.mentions and "add_argument" not in function.mentions:
                continue
            reader = self._of(function)
            for op in operations(function.body):
                match op:
                    case ops.SetAttribute(name=attribute, src=src) if attribute == name and of_class:
                        found.append(reader.at_most(src, depth + 1))
                    case ops.CallMethod(name="add_argument") if _is_option(reader.flow, op, name):
                        found.append(reader.at_most(argument(op, -1, "default"), depth + 1))
                    case ops.DefineClass(members=members):
                        found += [reader.at_most(temp, depth + 1) for member, temp in members if member == name]
        return found

    def _of(self, function: ops.Function, calls: Sequence[object] = ()) -> Numbers:
        return Numbers(function, calls=calls, others=self._others)

    def _length(self, held: Temp, depth: int) -> int | None:
        """Return how many elements something holds at most."""
        if depth > DEPTH:
            return None
        match self.flow.made.get(held):
            case ops.Make(kind="list" | "tuple", entries=entries):
                return None if any(entry.spread is not Spread.PLAIN for entry in entries) else len(entries)
            case ops.Load(name=name):
                return self._held(name.text, Numbers._length, depth)
            case ops.CallMethod(name=name, base=base, arguments=()) if name in _SAME_LENGTH:
                return self._length(base, depth + 1)
            case ops.Call() as call if self._builtin(call) in ("list", "tuple", "sorted") and len(call.arguments) == 1:
                return self._length(call.arguments[0].temp, depth + 1)
            case ops.Call() | ops.CallMethod() as call:
                qualified = self.flow.called(call)
                if qualified in _RANGES or self._builtin(call) == "range":
                    return self._steps(call)
                if qualified in _SPACED:
                    return self.at_most(argument(call, 2, _SPACED[qualified]), depth + 1)
        return None

    def _builtin(self, call: ops.Call | ops.CallMethod) -> str:
        return self.flow.path(call.callee) if isinstance(call, ops.Call) else ""

    def _steps(self, call: ops.Call | ops.CallMethod) -> int | None:
        """Return how many numbers a range of constants has."""
        alone = len(call.arguments) == 1
        temps = (
            NO_TEMP if alone else argument(call, 0, "start"),
            argument(call, 0 if alone else 1, "end", "stop"),
            argument(call, 2, "step"),
        )
        numbers = [getattr(self.flow.made.get(temp), "value", None) for temp in temps]
        first, last, width = (number if isinstance(number, int | float) else None for number in numbers)
        if last is None or (temps[0] != NO_TEMP and first is None) or (temps[2] != NO_TEMP and not width):
            return None
        return max(0, math.ceil((last - (first or 0)) / (width or 1)))


def argument(call: ops.Op, position: int, *names: str) -> Temp:
    """Return what a call gives for a parameter; NO_TEMP where it gives nothing, or it is not known."""
    given: tuple[Argument, ...] = getattr(call, "arguments", ())
    if any(one.spread is Spread.STAR for one in given):
        return NO_TEMP
    plain = [one.temp for one in given if one.spread is Spread.PLAIN]
    if 0 <= position < len(plain):
        return plain[position]
    return next((one.temp for one in given if one.name in names and one.name), NO_TEMP)


def actual(call: ops.Op, function: ops.Function, name: str) -> Temp:
    """Return what a call of a function gives for a parameter; NO_TEMP where it gives nothing, or it is not known."""
    names = [parameter.name for parameter in function.parameters]
    is_method = function.cls is not None and not function.is_static
    return argument(call, names.index(name) - is_method, name) if name in names else NO_TEMP


def integer(made: ops.Op | None) -> int | None:
    """Return the whole number that an operation makes, if it is a constant."""
    value = made.value if isinstance(made, ops.Constant) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _greatest(found: Iterable[int | None]) -> int | None:
    numbers = list(found)
    known = [number for number in numbers if number is not None]
    return max(known) if known and len(known) == len(numbers) else None


def _fills(use: tuple[Temp, ops.Op]) -> bool:
    held, op = use
    match op:
        case ops.SetItem(base=base):
            return base == held
        case ops.CallMethod(base=base, name=name):
            return base == held and name in FILLING
    return False


def _computed(operator: str, left: int | None, right: int | None) -> int | None:
    """Return what two numbers make at most, neither of them negative: sizes are not."""
    match operator, left, right:
        case "*", int(), int():
            return left * right
        case "+", int(), int():
            return left + right
        case "-", int(), int():
            return left - right
        case "//" | "/", int(), int() if right > 0:
            return left // right
        case "**", int(), int() if 0 <= right < 64 and left < 2**16:
            return int(left**right)
        case "%", _, int():
            return max(right - 1, 0)
    return None


def _is_option(flow: DefUse, op: ops.CallMethod, name: str) -> bool:
    texts = (getattr(flow.made.get(one.temp), "value", None) for one in op.arguments if one.spread is Spread.PLAIN)
    return any(isinstance(text, str) and text.lstrip("-").replace("-", "_") == name for text in texts)
