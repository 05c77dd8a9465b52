"""What the subscripts of an einsum say: queries times keys, or weights times values."""

from __future__ import annotations

Subscripts = tuple[str, str, str]


def parts(equation: str) -> Subscripts:
    """The subscripts of the two operands and of the result."""
    operands, _, result = equation.partition("->")
    first, _, second = operands.partition(",")
    return first, second, result


def scores(equation: str) -> Subscripts | None:
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


def summed(equation: str, place: int, product: Subscripts | None) -> Subscripts | None:
    """The subscripts of weights, values and result, where an einsum sums over the keys; `product`: of the scores."""
    first, second, result = parts(equation)
    own, value = (first, second) if place == 0 else (second, first)
    if not result or "," in second or not own or own[-1] in result or own[-1] not in value:
        return None
    if product is not None and len(product[2]) != len(own):
        return None
    free, rows = set(value) - set(own) - {"."}, set(own) - set(value) - {"."}
    fits = len(free) == 1 and len(rows) == 1 and rows <= set(result) and free <= set(result)
    return (own, value, result) if fits else None
