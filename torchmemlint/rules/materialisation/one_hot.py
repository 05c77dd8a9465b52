"""Classes that are written out as rows of zeros with a one: how they are made, and what takes them."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation, Taking
from torchmemlint.flow.ir.ops import Compare, Constant, GetItem, Make, Operate
from torchmemlint.flow.ir.places import ComputedKey, Spread, Temp
from torchmemlint.immutable import immutable

LAST = -1

_ALIKE = frozenset(  # the same numbers in another type, at another place
    "float double half bfloat16 int long to type type_as cuda cpu contiguous detach clone requires_grad".split()
)
_ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})
WORDS = frozenset({"one_hot", "eye", "scatter", "scatter_"})
MAKING = frozenset({"one_hot", "getitem", "scatter"})


@immutable()
class Encoded:
    """A one-hot tensor: the operation that has made it, the classes that it was made of, and their dimension."""

    made: Operation
    indices: Temp
    axis: int  # LAST, or counted from the first dimension
    rank: int | None  # how many dimensions there are; None: not known
    how: str  # "`F.one_hot(labels, 10)`" in words
    every_class: bool = False  # is a row written out for every class there is?


def encoded(formula: Formula, operation: Operation) -> Encoded | None:
    """The one-hot tensor that an operation makes; None where it makes something else."""
    match operation:
        case Operation(name="one_hot", operands=(labels, *_), qualified="torch.nn.functional.one_hot"):
            rank = 2 if _is_flat(formula, labels) else None
            made = _origin(formula, labels)
            counts = made is not None and made.qualified == "torch.arange"
            return Encoded(operation, labels, LAST, rank, "one row of numbers for each class label", counts)
        case Operation(op=GetItem(base=table, key=ComputedKey(temp=index))) if _is_identity(formula, table):
            if not isinstance(formula.made(index), Constant | Operate | Compare) and not _is_tuple(formula, index):
                rank = 2 if _is_flat(formula, index) else None
                return Encoded(operation, index, LAST, rank, "rows of an identity matrix, itself allocated", True)
        case Operation(name="scatter", operands=(_, *_)):
            return _scattered(formula, operation)
    return None


def _scattered(formula: Formula, operation: Operation) -> Encoded | None:
    """`torch.zeros(n, classes).scatter_(1, labels, 1)`."""
    labels = operation.argument("index", 2)
    zeros = _origin(formula, operation.operands[0])
    axis = formula.integer(operation.argument("dim", 1))
    value = operation.argument("value", 3)
    if labels is None or zeros is None or zeros.name not in _ZEROS or axis is None:
        return None
    if formula.constant(operation.keyword("src") if value is None else value) != 1:
        return None
    rank = _rank_of(formula, zeros)
    if rank is not None and axis == rank - 1:
        axis = LAST
    return Encoded(operation, labels, axis, rank, "ones put into rows of zeros, one row for each class label")


def _rank_of(formula: Formula, zeros: Operation) -> int | None:
    """How many dimensions a tensor of zeros has, where its sizes are spelled out."""
    sizes = zeros.operands[1:] if zeros.name == "new_zeros" else zeros.operands
    if zeros.name == "zeros_like" or not sizes:
        return None
    together = formula.made(sizes[0])
    if isinstance(together, Make):
        return None if any(entry.spread is not Spread.PLAIN for entry in together.entries) else len(together.entries)
    return len(sizes) if len(sizes) > 1 else None


def _is_identity(formula: Formula, table: Temp) -> bool:
    made = _origin(formula, table)
    return made is not None and made.qualified == "torch.eye" and len(made.operands) == 1


def _is_tuple(formula: Formula, index: Temp) -> bool:
    made = formula.made(index)
    return isinstance(made, Make) and made.kind == "tuple"


def _origin(formula: Formula, temp: Temp) -> Operation | None:
    """What made a tensor, before it was given another type or place; None where something else takes it, too."""
    made = formula.of(temp)
    while made is not None and made.name in _ALIKE and made.operands:
        made = formula.of(made.operands[0])
    return made


def _is_flat(formula: Formula, labels: Temp) -> bool:
    """Have the labels one dimension: `labels.view(-1)`, `labels.flatten()`?"""
    made = _origin(formula, labels)
    if made is None or made.keywords:
        return False
    if made.name in ("view", "reshape"):
        return len(made.operands) == 2 and formula.integer(made.operands[1]) == -1
    return made.name in ("flatten", "ravel") and len(made.operands) == 1


def takings(formula: Formula, made: Encoded) -> Iterator[tuple[Taking, frozenset[int]]]:
    """What takes the one-hot numbers in the end, with the numbers by which the classes' dimension may be called."""
    pending = [(made.made, made.axis, made.rank)]
    while pending:
        operation, axis, rank = pending.pop()
        for taking in formula.takings(operation):
            taken = taking.operation
            moved = _moved(formula, taken, axis) if taken is not None and taking.index == 0 else None
            if taken is not None and taking.index == 0 and taken.name in _ALIKE:
                pending.append((taken, axis, rank))
            elif taken is not None and moved is not None:
                pending.append((taken, *moved))
            else:
                names = {axis} if rank is None else {axis % rank, axis % rank - rank}
                yield taking, frozenset(names)


def _moved(formula: Formula, operation: Operation, axis: int) -> tuple[int, int | None] | None:
    """Where the classes lie after dimensions are exchanged."""
    given = [formula.integer(temp) for temp in operation.operands[1:]]
    if operation.keywords or None in given:
        return None
    if operation.name == "permute" and len(given) > 1:
        places = [place % len(given) for place in given if place is not None]
        return places.index(axis % len(given)), len(given)
    if operation.name == "movedim" and len(given) == 2 and given[0] == axis:
        return given[1] or 0, None
    return None
