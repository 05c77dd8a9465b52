"""Tensors that are copied where one that is there would do: `repeat` along a dimension of one, `cat` in a loop."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation, looks
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import For, If, While
from torchmemlint.flow.ir.places import Spread, Temp
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import torch_api
from torchmemlint.rules.materialisation.pairs import layout

REPEAT = frozenset({"repeat"})
_READING = torch_api.JOINERS | frozenset(  # what makes a tensor of its own of those that it is given
    "add sub mul div pow eq ne lt le gt ge masked_fill sum mean minimum maximum where cosine_similarity mse_loss "
    "l1_loss smooth_l1_loss exp log sigmoid tanh relu".split()
)


@immutable()
class Repeated:
    """`x.unsqueeze(1).repeat(1, n, 1)` whose copies are only read."""

    call: ops.Op
    put_in: ops.Op  # where the dimension of size one comes from
    sizes: tuple[Temp, ...]
    axis: int  # the dimension that is repeated
    readings: tuple[ops.Op, ...]  # what takes the result


@immutable()
class Growing:
    """`out = torch.cat([out, x])` in a loop that does nothing else with `out`."""

    call: ops.Op
    target: str
    loop: ops.Op


def repeated(formula: Formula) -> Iterator[Repeated]:
    """Copies along a dimension of size one, in order."""
    for operation in formula.operations(REPEAT):
        sizes = operation.operands[1:]
        along = [index for index, size in enumerate(sizes) if formula.integer(size) != 1]
        if not isinstance(operation.op, ops.CallMethod) or operation.qualified or operation.keywords or len(sizes) < 2:
            continue
        if len(along) != 1 or formula.integer(sizes[along[0]]) == 0:
            continue
        put_in = formula.of(operation.operands[0])
        axis = _put_in(formula, put_in, len(sizes)) if put_in is not None else None
        if put_in is None or axis is None or axis % len(sizes) != along[0]:
            continue
        readings = [_reading(taking.operation, taking.index) for taking in formula.takings(operation)]
        if readings and None not in readings:
            found = tuple(one for one in readings if one is not None)
            yield Repeated(operation.op, put_in.op, sizes, along[0], found)


def _put_in(formula: Formula, made: Operation, rank: int) -> int | None:
    """The dimension of size one that an operation has put in."""
    if made.name == "unsqueeze":
        return formula.integer(made.argument("dim", 1))
    if made.name in ("view", "reshape") and len(made.operands) == rank + 1:
        ones = [index for index, size in enumerate(made.operands[1:]) if formula.integer(size) == 1]
        return ones[0] if len(ones) == 1 else None
    if isinstance(made.op, ops.GetItem):
        kinds = layout(made.op.key)
        return kinds.index("+") if kinds.count("+") == 1 and set(kinds) <= {"+", ":"} else None
    return None


def _reading(operation: Operation | None, index: int) -> ops.Op | None:
    """An operation that reads an operand and makes a tensor of its own."""
    if operation is None or (operation.in_place and index == 0):
        return None
    alike = isinstance(operation.op, ops.Operate | ops.Compare) or operation.name in _READING
    return operation.op if alike and operation.layer is None else None


# -- cat in a loop ---------------------------------------------------------------------------------------------------


def growing(formula: Formula) -> Iterator[Growing]:
    """Tensors that a loop puts together piece by piece, in order."""
    around = {
        op: loop
        for loop in operations(formula.function.body)
        if isinstance(loop, While) or (isinstance(loop, For) and not loop.comprehension)
        for op in operations(loop.body)
    }
    for operation in formula.operations(torch_api.JOINERS) if around else ():
        loop, parts = around.get(operation.op), formula.made(operation.operands[0]) if operation.operands else None
        kept = formula.taken(operation.dst)
        if loop is None or not operation.qualified or not isinstance(parts, ops.Make) or len(kept) != 1:
            continue
        place = _written_to(formula, kept[0])
        plain = len(parts.entries) > 1 and all(entry.spread is Spread.PLAIN for entry in parts.entries)
        own = [e.temp for e in parts.entries if place and _read_from(formula, formula.written(e.temp)) == place]
        if place and plain and len(own) == 1 and _is_alone(formula, loop, place, kept[0], parts):
            yield Growing(operation.op, place, loop)


def _is_alone(formula: Formula, loop: ops.Op, place: str, written: ops.Op, parts: ops.Make) -> bool:
    """Does a loop do nothing else with what stands at a place, but for a look at it, and a branch that begins it?"""
    inside = list(operations([loop]))[1:]
    branched = {op for branch in inside if isinstance(branch, If) for op in operations([branch])}
    for op in inside:
        if op is not written and op not in branched and _written_to(formula, op) == place:
            return False
        if isinstance(op, ops.Load | ops.GetAttribute) and _read_from(formula, op) == place:
            takers = formula.taken(op.dst)
            if not all(t is parts or isinstance(t, ops.Compare | If | While) or looks(t, op.dst) for t in takers):
                return False
    return True


def _written_to(formula: Formula, op: ops.Op) -> str:
    """The name, or name with an attribute, that an operation binds."""
    if isinstance(op, ops.Bind):
        return op.name.text
    return _attribute(formula, op.base, op.name) if isinstance(op, ops.SetAttribute) else ""


def _read_from(formula: Formula, op: ops.Op | None) -> str:
    if isinstance(op, ops.Load):
        return op.name.text
    return _attribute(formula, op.base, op.name) if isinstance(op, ops.GetAttribute) else ""


def _attribute(formula: Formula, base: Temp, name: str) -> str:
    owner = formula.written(base)
    return f"{owner.name.text}.{name}" if isinstance(owner, ops.Load) else ""
