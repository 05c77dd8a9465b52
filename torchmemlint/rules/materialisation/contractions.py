"""Results of all pairs of rows that are computed by way of every pair's features."""

from __future__ import annotations

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation
from torchmemlint.flow.fact.origins import is_discrete, is_tensor
from torchmemlint.flow.ir.ops import GetItem, Operate
from torchmemlint.flow.ir.places import Temp
from torchmemlint.immutable import immutable
from torchmemlint.rules.materialisation.pairs import Pairs, is_over_features, is_over_last, pairs


@immutable()
class Contraction:
    """Something computed for every pair of rows, feature by feature, and then added up over the features."""

    pairs: Pairs
    whole: Operation  # the sum over the features
    dimension: int
    measure: str  # "squared", "mean squared", "euclidean", "manhattan", "dot", "cosine"

    @property
    def instead(self) -> str:
        """What needs no tensor of pairs with features."""
        return {
            "squared": "`torch.cdist(a, b).pow(2)`",
            "mean squared": "`torch.cdist(a, b).pow(2)`, divided by the number of features,",
            "euclidean": "`torch.cdist(a, b)`",
            "manhattan": "`torch.cdist(a, b, p=1)`",
            "dot": "a matrix product",
            "cosine": "a matrix product of normalised rows",
        }[self.measure]


def is_of_torch(formula: Formula, found: Contraction) -> bool:
    """Is it written as it is in torch, and not as in numpy, too?"""
    if found.whole.qualified or found.measure == "cosine" or found.whole.name == "norm":
        return True
    if any(name in ("dim", "keepdim") for name, _ in found.whole.keywords):
        return True
    inner = formula.of(found.whole.operands[0])
    if inner is not None and not isinstance(inner.op, Operate):
        return True
    sides = (found.pairs.left, found.pairs.right)
    return any(not isinstance(side.put_in.op, GetItem) or is_tensor(formula, side.base) for side in sides)


def is_whole(formula: Formula, found: Pairs) -> bool:
    """Are whole numbers compared, for which `cdist` is no help?"""
    return any(is_discrete(formula, side.base) for side in (found.left, found.right))


def contraction(formula: Formula, whole: Operation) -> Contraction | None:
    """What an operation adds up over the features of pairs; None where it does not."""
    if not whole.operands:
        return None
    if whole.name in ("cosine_similarity", "pairwise_distance"):
        return _of_function(formula, whole)
    if whole.name in ("sum", "mean"):
        dimension = formula.integer(whole.argument("dim", 1))
        return _of_sum(formula, whole, dimension) if dimension is not None else None
    if whole.name in ("norm", "vector_norm"):
        return _of_norm(formula, whole)
    return None


def _of_function(formula: Formula, whole: Operation) -> Contraction | None:
    """`F.cosine_similarity(a.unsqueeze(1), b.unsqueeze(0), dim=-1)`."""
    found = pairs(formula, whole, whole.operands[:2])
    dimension: int | None = -1
    cosine = whole.name == "cosine_similarity"
    if cosine:
        said, place = (whole, 2) if whole.layer is None else (whole.layer, 0)
        given = said.argument("dim", place)
        dimension = formula.around(said).integer(given) if given is not None else 1
    if found is None or dimension is None or not is_over_features(found, dimension, vectors=True):
        return None
    return Contraction(found, whole, dimension, "cosine" if cosine else "euclidean")


def _of_sum(formula: Formula, whole: Operation, dimension: int) -> Contraction | None:
    """`(a[:, None] - b[None]).pow(2).sum(-1)`, `.abs().sum(-1)`, `(a[:, None] * b[None]).sum(-1)`."""
    inner = _alone(formula, whole, whole.operands[0])
    if inner is None:
        return None
    squared = _squared(formula, inner)
    if squared is not None:
        measure = "squared" if whole.name == "sum" else "mean squared"
        return _of_difference(formula, whole, inner, squared, dimension, measure)
    if whole.name == "sum" and inner.name == "abs" and inner.operands:
        return _of_difference(formula, whole, inner, inner.operands[0], dimension, "manhattan")
    if whole.name == "sum" and inner.name == "mul":
        found = pairs(formula, inner, inner.operands)
        if found is not None and is_over_last(found, dimension):
            return Contraction(found, whole, dimension, "dot")
    return None


def _of_norm(formula: Formula, whole: Operation) -> Contraction | None:
    """`(a[:, None] - b[None]).norm(dim=-1)`."""
    given = whole.argument("p", 1)
    power = given if given is not None else whole.keyword("ord")
    dimension = formula.integer(whole.argument("dim", 2))
    order = formula.constant(power) if power is not None else 2
    if dimension is None or order not in (1, 2):
        return None
    measure = "manhattan" if order == 1 else "euclidean"
    return _of_difference(formula, whole, whole, whole.operands[0], dimension, measure)


def _of_difference(
    formula: Formula, whole: Operation, taker: Operation, temp: Temp, dimension: int, measure: str
) -> Contraction | None:
    difference = _alone(formula, taker, temp)
    if difference is None or difference.name != "sub":
        return None
    found = pairs(formula, difference, difference.operands)
    if found is None or not is_over_features(found, dimension, vectors=whole.name.endswith("norm")):
        return None
    return Contraction(found, whole, dimension, measure)


def _alone(formula: Formula, taker: Operation, temp: Temp) -> Operation | None:
    """What made an operand, where the operation that takes it is the only one that does."""
    made = formula.of(temp)
    if made is None or any(taking.operation is not taker for taking in formula.takings(made)):
        return None
    return made


def _squared(formula: Formula, operation: Operation) -> Temp | None:
    """What an operation squares."""
    match operation:
        case Operation(name="square", operands=(operand,)):
            return operand
        case Operation(name="pow", operands=(operand, exponent)):
            return operand if formula.constant(exponent) == 2 else None
        case Operation(name="mul", operands=(left, right)):
            made = formula.of(left)
            return left if made is not None and made is formula.of(right) else None
    return None
