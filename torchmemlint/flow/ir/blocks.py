"""The blocks of operations: all that is run in a body, however deep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from .control import Break, Continue, For, If, Raise, Return, Try, While, With
from .ops import Bind, Function, GetAttribute, Op, SetItem
from .places import AttributePlace


def operations(body: Iterable[Op]) -> Iterator[Op]:
    """Yield the operations of a body and of all blocks in it, outer ones first; not those of nested functions."""
    left = [*body]
    left.reverse()
    while left:
        op = left.pop()
        yield op
        if type(op) in _BLOCKS:
            for block in reversed(blocks(op)):
                left.extend(reversed(block))


def blocks(op: Op) -> tuple[list[Op], ...]:
    """Return the blocks of an operation, as they stand in the text."""
    found = _BLOCKS.get(type(op))
    return found(op) if found is not None else ()


_BLOCKS: dict[type[Op], Callable[[Any], tuple[list[Op], ...]]] = {
    If: lambda op: (op.then, op.orelse),
    For: lambda op: (op.body, op.orelse),
    While: lambda op: (op.head, op.body, op.orelse),
    Try: lambda op: (op.body, *(handler.body for handler in op.handlers), op.orelse, op.final),
    With: lambda op: (op.body,),
}


def is_inside(sites: Iterable[object], op: Op) -> bool:
    """Does one of some places stand in a block of an operation?"""
    return not {inner for block in blocks(op) for inner in operations(block)}.isdisjoint(sites)


def missed(op: object) -> frozenset[str]:
    """Return the attributes that a `try` has not found where its handler runs, and the names that it has not bound."""
    if not isinstance(op, Try) or any(handler.types != ("AttributeError",) for handler in op.handlers):
        return frozenset()
    body = list(operations(op.body))
    read = [one.name for one in body if isinstance(one, GetAttribute)]
    return frozenset((*read, *(one.name.text for one in body if isinstance(one, Bind))))


def fills(body: Iterable[Op]) -> bool:
    """Is something put under a key of an attribute: into a table, or a tensor that is filled?"""
    return any(type(op) is SetItem and type(op.place) is AttributePlace for op in operations(body))


class Layout:
    """Which operation of a function stands in which block, and in what order."""

    def __init__(self, function: Function) -> None:
        self.order: dict[Op, int] = {}
        self._around: dict[Op, tuple[list[Op], Op | None]] = {}
        self._take(function.body, None)

    def _take(self, block: list[Op], around: Op | None) -> None:
        for op in block:
            self.order[op] = len(self.order)
            self._around[op] = (block, around)
            for inner in blocks(op):
                self._take(inner, op)

    def home(self, op: Op) -> list[Op]:
        """Return the block that an operation stands in; a `with` has none of its own."""
        block, around = self._around[op]
        while isinstance(around, With):
            block, around = self._around[around]
        return block

    def around(self, op: Op) -> set[int]:
        """Return the blocks that an operation stands in, by identity."""
        found, current = set[int](), self._around.get(op)
        while current is not None:
            found.add(id(current[0]))
            current = self._around[current[1]] if current[1] is not None else None
        return found

    def within(self, op: Op, among: set[int]) -> Op | None:
        """Return the operation of one of some blocks that an operation stands in, or is."""
        current: Op | None = op
        while current is not None and id(self.home(current)) not in among:
            current = self._around[current][1]
        return current

    def following(self, op: Op) -> Iterator[Op]:
        """Yield what is run after an operation, in its block and those around, until one leaves the function."""
        current: Op | None = op
        while current is not None:
            block, around = self._around[current]
            later = block[block.index(current) + 1 :]
            yield from later
            if any(isinstance(one, Return | Raise | Break | Continue) for one in later):
                return
            current = around

    def is_in(self, op: Op, others: set[Op]) -> bool:
        """Is it one of some operations, or in one?"""
        current: Op | None = op
        while current is not None:
            if current in others:
                return True
            current = self._around[current][1]
        return False

    def above(self, op: Op) -> Iterator[tuple[Op, list[Op]]]:
        """Yield the operations around one, innermost first, each with the block of it that leads there."""
        block, around = self._around[op]
        while around is not None:
            yield around, block
            block, around = self._around[around]

    def loops(self, op: Op) -> Iterator[For | While]:
        """Yield the loops around an operation, innermost first."""
        return (around for around, _ in self.above(op) if isinstance(around, For | While))

    def entered(self, op: Op) -> Iterator[int]:
        """Yield the contexts of the `with` blocks around an operation, innermost first."""
        return (context for around, _ in self.above(op) if isinstance(around, With) for context in around.contexts)


@lru_cache(maxsize=256)
def layout_of(function: Function) -> Layout:
    """Return which operation of a function stands where, of one that is asked about again and again."""
    return Layout(function)
