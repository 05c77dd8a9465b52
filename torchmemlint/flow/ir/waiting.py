"""What a generator holds while it waits, and goes on with afterwards."""

from __future__ import annotations

from functools import lru_cache

from .blocks import operations
from .control import For, While, Yield
from .ops import Bind, Function, Load, Op


@lru_cache(maxsize=4096)
def held(function: Function) -> frozenset[str]:
    """Return the names that a generator reads after a `yield`, and has bound before it."""
    order = list(operations(function.body))
    waits = [number for number, op in enumerate(order) if type(op) is Yield]
    bound: dict[str, list[int]] = {}
    for number, op in enumerate(order):
        if type(op) is Bind:
            bound.setdefault(op.name.text, []).append(number)
    number_of = {op: number for number, op in enumerate(order)}
    loops = [(number, number + _length(op)) for op, number in number_of.items() if isinstance(op, For | While)]
    found: set[str] = set()
    for number, op in enumerate(order):
        if type(op) is Load and op.name.text in bound:
            last = max((at for at in bound[op.name.text] if at < number), default=-1)
            around = (start for start, end in loops if start <= number <= end and start > last)
            first = min(around, default=number)  # the outermost loop that comes round without a new value
            ends = max((end for start, end in loops if start == first), default=number)
            if any(last < wait < number or first <= wait <= ends for wait in waits):
                found.add(op.name.text)
    return frozenset(found)


def _length(loop: Op) -> int:
    """Return how many operations a loop has, with those of the blocks in it."""
    return sum(1 for _ in operations([loop])) - 1
