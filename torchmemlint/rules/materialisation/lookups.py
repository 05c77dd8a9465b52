"""Operations that do as well with indices as with one-hot rows."""

from __future__ import annotations

from torchmemlint.flow.fact.equations import equation
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation, Taking
from torchmemlint.flow.fact.origins import is_weight, usual
from torchmemlint.rules.materialisation.one_hot import LAST, Encoded

_PRODUCTS = frozenset({"matmul", "mm", "bmm"})
_LOOKUPS = _PRODUCTS | {"linear", "einsum"}
_MANY_CLASSES = 256  # a row of so many 64-bit integers is 2 KiB


def matters(formula: Formula, made: Encoded, takers: list[Operation]) -> bool:
    """Are the rows large beside what is made of them?

    A product with scores of each class is as large as they are. A lookup gives a row of the table for each label;
    beside it the one-hot row is small, unless there are many classes: those of a layer's table, or a number says so.
    """
    if made.every_class or any(operation.name not in _LOOKUPS for operation in takers):
        return True
    classes = usual(formula, made.made.argument("num_classes", 1)) if made.made.name == "one_hot" else None
    if isinstance(classes, int):
        return classes >= _MANY_CLASSES
    return any(is_weight(formula, temp) for operation in takers for temp in operation.operands)


def instead_of(formula: Formula, taking: Taking, axis: frozenset[int]) -> tuple[Operation, str, str] | None:
    """The operation that does as well with indices, what it does with the rows, and what to use; None for others."""
    operation = taking.operation
    if operation is None:
        return None
    if operation.name == "cross_entropy" and operation.argument("target", 1) == taking.temp:
        if _is_weighted(operation):
            return None
        return (
            operation,
            "the target of a cross entropy, which may be class labels",
            "cross entropy takes the labels directly",
        )
    if operation.name in _PRODUCTS | {"linear"} and taking.index == 0 and LAST in axis and operation.layer is None:
        return operation, "a product with one-hot rows looks up rows of the other factor", "index the table instead"
    if operation.name == "einsum" and taking.index > 0 and LAST in axis:
        if _sums_over_last(formula, operation, taking.index):
            what = "a sum over one-hot classes looks up entries of the other factor"
            return operation, what, "index the table instead"
        return None
    return _picked(formula, operation, axis) if operation.name == "mul" else None


def _is_weighted(loss: Operation) -> bool:
    """Has a cross entropy weights of classes?"""
    made, position = (loss, 2) if loss.layer is None else (loss.layer, 0)
    return made.argument("weight", position) is not None


def _sums_over_last(formula: Formula, einsum: Operation, index: int) -> bool:
    """Is the last dimension of an operand of `einsum` summed away together with one of another operand?"""
    terms, arrow, result = (equation(formula, einsum) or "").partition("->")
    letters = terms.split(",")
    if not arrow or len(letters) != len(einsum.operands) - 1 or not letters[index - 1].isalpha():
        return False
    last = letters[index - 1][-1]
    return last not in result and sum(last in term for term in letters) == 2


def _picked(formula: Formula, product: Operation, axis: frozenset[int]) -> tuple[Operation, str, str] | None:
    """A product that is summed over the dimension of the classes, and taken by nothing else."""
    taken = formula.takings(product)
    while len(taken) == 1 and (operation := taken[0].operation) is not None:
        if operation.name == "sum" and taken[0].index == 0:
            dimension = operation.argument("dim", 1)
            over = formula.integer(dimension)
            if dimension is not None and (over is None or over not in axis):
                return None
            what = "summed over the classes, a product with one-hot rows picks a number for each label"
            return operation, what, "`gather` picks the numbers"
        if operation.name != "neg":
            return None
        taken = formula.takings(operation)
    return None
