"""The blocks of operations: all that is run in a body, however deep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .ops import AttributePlace, Bind, For, GetAttribute, If, Op, SetItem, Try, While, With


def operations(body: Iterable[Op]) -> Iterator[Op]:
    """Yield the operations of a body and of all blocks in it, outer ones first; not those of nested functions."""
    left = [*body]
    left.reverse()
    while left:
        op = left.pop()
        yield op
        for block in reversed(blocks(op)):
            left.extend(reversed(block))


def blocks(op: Op) -> tuple[list[Op], ...]:
    """Return the blocks of an operation, as they stand in the text."""
    match op:
        case If():
            return op.then, op.orelse
        case For():
            return op.body, op.orelse
        case While():
            return op.head, op.body, op.orelse
        case Try():
            return op.body, *(handler.body for handler in op.handlers), op.orelse, op.final
        case With():
            return (op.body,)
    return ()


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
