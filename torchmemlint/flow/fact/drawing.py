"""Drawing: how many rows a batch has that a method of the project draws from a memory: `memory.sample(128)`.

The method is known by its name. Each of that name has to draw as many as a parameter says, and to return those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchmemlint.flow.fact.numbers import DEPTH, Numbers, actual, argument
from torchmemlint.flow.fact.rows import CONVERTING, TENSORS, WRAPPING
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.places import NO_TEMP, Temp

# What draws, with the position and names of how many.
_DRAWING = {
    "random.sample": (1, "k"),
    "random.choices": (3, "k"),
    "numpy.random.choice": (1, "size"),
    "numpy.random.randint": (2, "size"),
    "torch.randint": (2, "size"),
}
_KEEPING = CONVERTING | {"detach"}
_TAKING = TENSORS | WRAPPING | {"torch.LongTensor"}


def drawn_rows(call: ops.Op, calls: Sequence[object], others: Iterable[ops.Unit]) -> int | None:
    """Return how many rows a network is given at most, where one of its inputs was drawn; None where none was.

    `calls` are those that led to its call, innermost first; `others` are the files that are imported there.
    """
    given = call.arguments if isinstance(call, ops.Call | ops.CallMethod) else ()
    found = (_rows(call.owner, one.temp, calls, others, 0) for one in given)
    return next((rows for rows in found if rows is not None), None)


def _rows(
    function: ops.Function, temp: Temp, calls: Sequence[object], others: Iterable[ops.Unit], depth: int
) -> int | None:
    flow = definitions(function)
    match flow.made.get(temp):
        case _ if depth > DEPTH:
            return None
        case ops.Load() as load:
            last = flow.last(load)
            return _rows(function, last.src, calls, others, depth + 1) if last is not None else None
        case ops.CallMethod(name=name, base=base) if name in _KEEPING:
            return _rows(function, base, calls, others, depth + 1)
        case ops.CallMethod(name="unsqueeze", base=base, arguments=[axis]) if _number(flow.made.get(axis.temp)):
            return _rows(function, base, calls, others, depth + 1)
        case ops.Unpack(src=src):
            whole = flow.made.get(src)
            return _drawn(whole, calls, others) if isinstance(whole, ops.CallMethod) else None
        case (ops.Call(arguments=[first, *_]) | ops.CallMethod(arguments=[first, *_])) as made:
            if flow.called(made) in _TAKING:
                return _rows(function, first.temp, calls, others, depth + 1)
    return None


def _number(made: ops.Op | None) -> bool:
    """Is it an axis behind the first?"""
    return isinstance(made, ops.Constant) and isinstance(made.value, int) and made.value > 0


def _drawn(call: ops.CallMethod, calls: Sequence[object], others: Iterable[ops.Unit]) -> int | None:
    """Return how many rows a method gives."""
    units = {call.owner.unit, *others}
    methods = [c.methods[call.name] for unit in units for c in unit.classes if call.name in c.methods]
    given = {_size(call, method) for method in methods}
    temp = given.pop() if len(given) == 1 else NO_TEMP
    return Numbers(call.owner, calls=calls, others=units).at_most(temp) if temp != NO_TEMP else None


def _size(call: ops.CallMethod, method: ops.Function) -> Temp:
    """Return what a call gives for how many are drawn; NO_TEMP where the method draws none, or another number."""
    flow = definitions(method)
    for op in operations(method.body):
        found = _DRAWING.get(flow.called(op)) if isinstance(op, ops.Call | ops.CallMethod) else None
        if found is not None:
            size = flow.made.get(argument(op, *found))
            return actual(call, method, size.name.text) if isinstance(size, ops.Load) else NO_TEMP
    return NO_TEMP
