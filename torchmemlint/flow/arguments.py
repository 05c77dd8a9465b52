"""The arguments of a call, evaluated."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchmemlint.flow import containers
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Constant, Container, Known, Switches, Value
from torchmemlint.immutable import immutable
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.walking import contains


@immutable()
class Argument:
    """One argument of a call: its keyword ("0", "1", ... where positional), value and expression."""

    name: str
    value: Value
    node: cst.BaseExpression
    arg: cst.Arg | None = None


class Arguments:
    """The evaluated arguments of a call."""

    __slots__ = ("items", "unknown_keywords", "unknown_positional")

    def __init__(self, items: list[Argument], unknown_positional: bool = False, unknown_keywords: bool = False) -> None:
        self.items = items
        self.unknown_positional = unknown_positional  # a *args whose length is not known
        self.unknown_keywords = unknown_keywords  # a **kwargs whose keys are not known

    def get(self, *names: str) -> Value | None:
        """The value given under the first of these names ("0" is the first positional one)."""
        found = self.find(*names)
        return found.value if found else None

    def find(self, *names: str) -> Argument | None:
        """The argument given under the first of these names."""
        for name in names:
            for item in self.items:
                if item.name == name:
                    return item
        return None

    @property
    def values(self) -> list[Value]:
        """All values."""
        return [item.value for item in self.items]

    @property
    def switches(self) -> Switches:
        """The booleans among them, by name or position."""
        return tuple(
            (item.name, item.value.value)
            for item in self.items
            if isinstance(item.value, Constant) and item.value.known and isinstance(item.value.value, bool)
        )

    def triples(self) -> list[tuple[str, Value, cst.BaseExpression]]:
        """(name, value, expression) of each."""
        return [(item.name, item.value, item.node) for item in self.items]

    def pairs(self) -> tuple[tuple[str, Value], ...]:
        """(name, value) of each."""
        return tuple((item.name, item.value) for item in self.items)


def evaluate_arguments(it: Interpreter, args: Sequence[cst.Arg]) -> Arguments:
    """Evaluate the arguments, unpacking what is known of `*` and `**`."""
    result = Arguments([])
    position = 0
    for arg in args:
        value = it.evaluate(arg.value)
        if arg.star == "*":
            items, rest = _starred(it, value)
            for item in items:
                result.items.append(Argument(str(position), item, arg.value, arg))
                position += 1
            if rest is not None:
                result.unknown_positional = True
                result.items.append(Argument("*", rest, arg.value, arg))
        elif arg.star == "**":
            _unpack_keywords(it, result, value, arg)
        elif arg.keyword is not None:
            result.items.append(Argument(arg.keyword.value, value, arg.value, arg))
        else:
            result.items.append(Argument(str(position), value, arg.value, arg))
            position += 1
    return result


def _starred(it: Interpreter, value: Value) -> tuple[tuple[Value, ...], Value | None]:
    """What a starred value gives: the known first elements, and any one of the others (None: there are none)."""
    match value:
        case Container(items=None):
            return (), it.element(value)
        case Container(items=items) if items is not None:
            return items, None if value.kind == "tuple" else it.state.heap.get((value.oid, "[]"))  # appended later
        case Known(role="iterator", element=element) if element is not None:
            return (), element
        case _:
            return (), value


def _unpack_keywords(it: Interpreter, result: Arguments, value: Value, arg: cst.Arg) -> None:
    if not isinstance(value, Container):
        result.unknown_keywords = True
        result.items.append(Argument("**", value, arg.value, arg))
        return
    if value.others:
        result.unknown_keywords = True  # `{...} if use_cuda else {}`
    for key, element, place in containers.entries(it, value):
        if isinstance(element, Constant) and element.known and not _written_in(value.made, place):
            element = Known("default", element=element)  # `if use_cuda: kwargs.update(...)`: perhaps it is not there
        if key == "[]":
            result.unknown_keywords = True
            result.items.append(Argument("**", element, arg.value, arg))
        else:
            result.items.append(Argument(key[1:-1], element, arg.value, None))


def _written_in(display: Site | None, place: Site | None) -> bool:
    """Is the entry written in the dict's own display?"""
    return display is not None and place is not None and contains(display.node, place.node)


def flag(arguments: Arguments, *names: str) -> bool | None:
    """A boolean argument: its value where it is known, False where it is not given, None where it may be either."""
    value = arguments.get(*names)
    if value is None:
        return None if arguments.unknown_keywords else False
    if isinstance(value, Constant) and value.known:
        return bool(value.value)
    return None
