"""The blocks of operations: all that is run in a body, however deep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .ops import Op, Try

_BLOCKS = ("head", "then", "body", "orelse", "final")


def operations(body: Iterable[Op]) -> Iterator[Op]:
    """Yield the operations of a body and of all blocks in it, outer ones first; not those of nested functions."""
    for op in body:
        yield op
        for block in _BLOCKS:
            yield from operations(getattr(op, block, ()))
        if type(op) is Try:
            for handler in op.handlers:
                yield from operations(handler.body)
