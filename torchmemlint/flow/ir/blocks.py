"""The blocks of operations: all that is run in a body, however deep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .ops import For, If, Op, Try, While, With


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
