"""Two tensors laid out against each other, so that an operation between them is made for every pair of their rows."""

from __future__ import annotations

from collections.abc import Sequence

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.ops import CallMethod, Function, GetItem, Op
from torchmemlint.flow.ir.places import ConstantKey, Key, SliceKey, Temp
from torchmemlint.immutable import immutable

_PUTTING = frozenset({"unsqueeze", "view", "reshape"})
_SPREADING = frozenset({"expand", "expand_as", "repeat", "broadcast_to"})


@immutable()
class Spread:
    """A tensor with a dimension of size one put in, along which it is repeated when it meets another."""

    put_in: Operation
    base: Temp  # the tensor without it
    axes: frozenset[int]  # counted from the first dimension, or from the last
    rank: int  # at least so many dimensions there are, as its subscript shows; 0: nothing is shown
    ends: bool  # the subscript ends with a dimension that the tensor had before


def may_pair(function: Function) -> bool:
    """Does a function put dimensions into two tensors?"""
    return sum(map(_puts_in, operations(function.body))) > 1


def _puts_in(op: Op) -> bool:
    return (isinstance(op, CallMethod) and op.name in _PUTTING) or (isinstance(op, GetItem) and "+" in layout(op.key))


def spread(formula: Formula, temp: Temp) -> Spread | None:
    """`x[:, None]`, `x.unsqueeze(1)`, `x.view(n, 1, d)`, also expanded; None where nothing is put in."""
    operation = formula.of(temp)
    if operation is None or not operation.operands:
        return None
    base = operation.operands[0]
    if operation.name in _SPREADING:
        return spread(formula, base)
    if isinstance(operation.op, GetItem):
        return _subscript(operation, base, layout(operation.op.key))
    if operation.name == "unsqueeze":
        axis = formula.integer(operation.argument("dim", 1))
        return Spread(operation, base, frozenset({axis}), 0, False) if axis is not None else None
    if operation.name in ("view", "reshape") and len(operation.operands) > 3:
        sizes = operation.operands[1:]
        ones = frozenset(index for index, size in enumerate(sizes) if formula.integer(size) == 1)
        return Spread(operation, base, ones, len(sizes), formula.integer(sizes[-1]) != 1) if len(ones) == 1 else None
    return None


def layout(key: Key) -> str:
    """The layout of a subscript, as of `SliceKey`; empty where it is of another kind."""
    if isinstance(key, ConstantKey):
        return "+" if key.value is None else ""
    return key.layout if isinstance(key, SliceKey) else ""


def _subscript(operation: Operation, base: Temp, kinds: str) -> Spread | None:
    if "+" not in kinds or not set(kinds) <= set("+:.") or kinds.count(".") > 1:
        return None
    if "." not in kinds:
        axes = frozenset(index for index, kind in enumerate(kinds) if kind == "+")
        return Spread(operation, base, axes, len(kinds), kinds[-1] == ":")
    if "+" in kinds[: kinds.index(".")]:
        return None
    axes = frozenset(index - len(kinds) for index, kind in enumerate(kinds) if kind == "+")
    return Spread(operation, base, axes, 0, kinds[-1] == ":")


@immutable()
class Pairs:
    """An operation on every pair of rows of two tensors."""

    operation: Operation
    left: Spread
    right: Spread


def pairs(formula: Formula, operation: Operation, operands: Sequence[Temp]) -> Pairs | None:
    """The operation as one on pairs; None where its operands are not spread along different dimensions."""
    if len(operands) != 2:
        return None
    left, right = (spread(formula, temp) for temp in operands)
    if left is None or right is None or left.axes & right.axes:
        return None
    sides = zip(operands, (left, right), strict=True)
    if not all(_is_for_these(formula, temp, side, operation) for temp, side in sides):
        return None
    signs = {axis < 0 for axis in left.axes | right.axes}
    return Pairs(operation, left, right) if len(signs) == 1 else None


def _is_for_these(formula: Formula, temp: Temp, side: Spread, taker: Operation) -> bool:
    """Is a tensor spread for one operation only? Where there are others, their results are as large."""
    operation = formula.of(temp)
    while operation is not None:
        if any(taking.operation is not taker for taking in formula.takings(operation)):
            return False
        if operation is side.put_in:
            return True
        taker, operation = operation, formula.of(operation.operands[0]) if operation.operands else None
    return False


def is_over_last(found: Pairs, dimension: int) -> bool:
    """Is a reduction along a dimension that stands behind those of the rows?"""
    last = max(found.left.axes | found.right.axes)
    return is_over_features(found, dimension, vectors=False) and (dimension > last or dimension == -1)


def is_over_features(found: Pairs, dimension: int, *, vectors: bool) -> bool:
    """Is a reduction along a dimension one over what the rows consist of, and not over the rows themselves?

    `vectors`: the reduction itself tells that rows are vectors (a norm).
    """
    axes = found.left.axes | found.right.axes
    last = max(axes)
    if last < 0:
        return dimension < 0 and dimension not in axes
    if dimension >= 0:
        return dimension not in axes
    if dimension != -1:
        return False
    shown = max(found.left.rank, found.right.rank)
    if shown > last + 1:
        return True
    # `x[:, None] - y[None, :]` of two rows of numbers is a table already.
    return vectors or not any(side.ends and side.rank == last + 1 for side in (found.left, found.right))
