"""What the subscripts of an einsum say: queries times keys, or weights times values."""

from __future__ import annotations

from torchmemlint.rules.activations.attention.stages import Stage


def parts(equation: str) -> tuple[str, str, str]:
    """The subscripts of the two operands and of the result."""
    operands, _, result = equation.partition("->")
    first, _, second = operands.partition(",")
    return first, second, result


def scores(equation: str) -> tuple[str, str, str] | None:
    """The subscripts of queries, keys and scores, where an einsum makes scores whose last axis runs over the keys."""
    first, second, result = parts(equation)
    if not result or "," in second:
        return None
    summed = (set(first) & set(second)) - set(result) - {"."}
    rows, columns = set(first) - set(second) - {"."}, set(second) - set(first) - {"."}
    letters = result.replace("...", "")
    if len(summed) != 1 or len(rows) != 1 or len(columns) != 1 or len(letters) != len(set(letters)):
        return None
    if result[-1] in columns:
        return first, second, result
    return (second, first, result) if result[-1] in rows else None


def summed(equation: str, place: int, weights: Stage) -> tuple[str, str, str] | None:
    """The subscripts of weights, values and result, where an einsum sums over the keys."""
    first, second, result = parts(equation)
    own, value = (first, second) if place == 0 else (second, first)
    if not result or "," in second or not own or own[-1] in result or own[-1] not in value:
        return None
    product = weights.product
    if product is not None and product.subscripts is not None and len(product.subscripts[2]) != len(own):
        return None
    free = set(value) - set(own) - {"."}
    rows = set(own) - set(value) - {"."}
    return (
        (own, value, result)
        if len(free) == 1 and len(rows) == 1 and rows <= set(result) and free <= set(result)
        else None
    )
