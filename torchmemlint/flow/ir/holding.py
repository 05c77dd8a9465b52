"""Holding: which names of a function hold what one of its operations gives, on the way to where it is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.closure import closure

from .blocks import operations
from .control import Await, For, Return, Yield
from .defuse import definitions, operands
from .ops import (
    Bind,
    Call,
    CallMethod,
    Choose,
    Collect,
    Function,
    GetAttribute,
    GetItem,
    Load,
    Make,
    Move,
    Op,
    SetAttribute,
    SetItem,
    Unbind,
    Unpack,
)
from .places import Name, Temp

_Node = Temp | str  # a temporary, or a name
_FILLING = frozenset({"add", "append", "extend", "setdefault", "update"})


class Holding:
    """The names that hold what an operation gives, or parts of it, from which certain operations are given some."""

    def __init__(self, function: Function, source: Op, users: Iterable[Op]) -> None:
        self._body = list(operations(function.body))
        self._flow = definitions(function)
        self._edges: dict[_Node, set[_Node]] = {}
        for op in self._body:
            for node, other in self._passes(op):
                self._edges.setdefault(node, set()).add(other)
        begin: list[_Node] = [getattr(source, "dst", -1)]
        self._held = closure(begin, lambda one: self._edges.get(one, ()))
        given: set[_Node] = {t for op in users for t in _given(op) if t in self._held}
        backward: dict[_Node, set[_Node]] = {}
        for node, others in self._edges.items():
            for other in others:
                backward.setdefault(other, set()).add(node)
        behind = closure(given, lambda one: backward.get(one, ()))
        way = self._held & behind
        items = {t for op in self._body if isinstance(op, For) for t in self._items(op)}
        bound = [op for op in self._body if isinstance(op, Bind) and op.name.text in way and op.src not in items]
        self.first = next((op for op in bound if op.src in way), None)
        self.names = {op.name.text for op in bound}
        self.bindings = [op for op in self._body if isinstance(op, Bind | Unbind) and op.name.text in self.names]
        self.uses = [op for op in self._body if isinstance(op, Load) and op.name.text in self.names]
        self.used: list[Name] = [op.name for op in (*self.bindings, *self.uses)]
        leaving = (op for op in self._body if isinstance(op, Return | Yield | SetAttribute))
        given_away = any(parameter.name in way for parameter in function.parameters)  # whoever called has it, too
        whole = way | {op.dst for op in self.uses}
        self.leaves = given_away or any(op.src in whole for op in leaving)

    def is_own(self, binding: Op) -> bool:
        """Does it bind a name to something of what is held, or to what is to be filled with it?"""
        if not isinstance(binding, Bind):
            return False
        made = self._flow.made.get(binding.src)
        empty = isinstance(made, Make) and not made.entries
        return binding.src in self._held or empty or (isinstance(made, Call | CallMethod) and not made.arguments)

    def _items(self, op: For) -> Iterator[Temp]:
        """Yield what a loop has in turn, and its parts."""
        yield op.item
        for unpack in self._flow.taken.get(op.item, ()):
            if isinstance(unpack, Unpack):
                yield from unpack.targets

    def _passes(self, op: Op) -> Iterator[tuple[_Node, _Node]]:
        """Yield what an operation passes something on from, and to."""
        match op:
            case Bind():
                yield op.src, op.name.text
            case Load():
                yield op.name.text, op.dst
            case GetItem() | GetAttribute():
                yield op.base, op.dst
            case Unpack():
                yield from ((op.src, target) for target in op.targets)
            case For():
                yield op.source, op.item
            case Collect():
                yield op.src, op.box
            case SetItem():
                yield from ((op.src, node) for node in self._container(op.base))
            case CallMethod():
                yield op.base, op.dst
                for temp in _given(op):
                    yield temp, op.dst
                    if op.name in _FILLING:
                        yield from ((temp, node) for node in self._container(op.base))
            case Call() | Make() | Move() | Choose() | Await():
                yield from ((temp, op.dst) for temp in operands(op))

    def _container(self, temp: Temp) -> Iterator[_Node]:
        """Yield what is filled, where something is put into it: a temporary, and the name that it was loaded from."""
        yield temp
        made = self._flow.made.get(temp)
        if isinstance(made, Load):
            yield made.name.text


def _given(op: Op) -> Iterator[Temp]:
    """Yield the arguments of a call."""
    if isinstance(op, Call | CallMethod):
        yield from (argument.temp for argument in op.arguments)
