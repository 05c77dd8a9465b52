"""Is a product of two tensors, a softmax and another product an attention that the fused function is made for?"""

from __future__ import annotations

import ast

from torchmemlint.rules.activations.attention import axes
from torchmemlint.rules.activations.attention.axes import Axis
from torchmemlint.rules.activations.attention.operations import Operations
from torchmemlint.rules.activations.attention.stages import Attention, Names, Product

# What is asked of a tensor without looking at its values.
LOOKING = frozenset({"shape", "dtype", "device", "ndim", "is_cuda", "requires_grad"})
ASKING = frozenset({"size", "dim", "numel", "get_device", "stride", "is_contiguous"})


def is_attention(found: Attention, operations: Operations) -> bool:
    """Does the product run over features, for many queries, with keys and values that are computed?"""
    product = found.product
    names = product.names or {}
    if _is_parameter(product.right, names) or _is_parameter(found.value, names):
        return False
    left = axes.axes(product.left, names, operations)
    right = axes.axes(product.right, names, operations)
    if product.spelling == "einsum":  # the subscripts say which axis is which
        return not any(known and known[-1] is Axis.POSITIONS for known in (left, right))
    rows, summed = (left[-2], left[-1]) if left is not None and len(left) > 1 else (None, None)
    summed_too, columns = (right[-2], right[-1]) if right is not None and len(right) > 1 else (None, None)
    if Axis.POSITIONS in (summed, summed_too) or {rows, columns} & {Axis.FEATURES, Axis.ONE}:
        return False
    if rows is Axis.POSITIONS or summed_too is Axis.FEATURES:
        return True
    return axes.exchanged(product.left, names) is None and axes.exchanged(product.right, names) is not None


def is_of_content(operand: ast.expr, product: Product, names: Names) -> bool:
    """Is what is added to the scores computed from the queries or keys? Then it is as large as they are."""
    own = _tensors(product.left) | _tensors(product.right)
    return not own.isdisjoint(_spread(operand, names))


def _is_parameter(node: ast.expr, names: Names, depth: int = 0) -> bool:
    """Is it an attribute of the object itself, perhaps turned round: a table, not something computed?"""
    match node:
        case ast.Attribute(value=ast.Name(id="self")):
            return True
        case ast.Attribute(value=value, attr="T" | "mT" | "weight" | "data"):
            return _is_parameter(value, names, depth)
        case ast.Call(func=ast.Attribute(value=value, attr="t" | "transpose" | "permute" | "unsqueeze")):
            return _is_parameter(value, names, depth)
        case ast.Name(id=name) if depth < 4:
            definition = names.get(name)
            return (
                definition is not None
                and definition.index is None
                and _is_parameter(definition.value, definition.before, depth + 1)
            )
    return False


def _tensors(node: ast.expr) -> set[str]:
    """The local names in an expression whose values it is computed from, not only their shapes."""
    found: set[str] = set()
    pending: list[ast.AST] = [node]
    while pending:
        match pending.pop():
            case ast.Attribute(attr=attribute) if attribute in LOOKING:
                pass
            case ast.Call(func=ast.Attribute(attr=method)) if method in ASKING:
                pass
            case ast.Name(id=name) if name != "self":
                found.add(name)
            case other:
                pending += ast.iter_child_nodes(other)
    return found


def _spread(node: ast.expr, names: Names, depth: int = 0) -> set[str]:
    """The names that an expression is computed from, and those that these were."""
    found = _tensors(node)
    if depth < 3:
        for name in list(found):
            definition = names.get(name)
            if definition is not None:
                found |= _spread(definition.value, definition.before, depth + 1)
    return found
