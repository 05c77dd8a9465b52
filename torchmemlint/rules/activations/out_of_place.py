"""Edits that have an operation make a new tensor where it overwrites one."""

from __future__ import annotations

from torchmemlint.findings import Edit, Span
from torchmemlint.knowledge import activations
from torchmemlint.rules.arguments import WrittenCall, shown
from torchmemlint.rules.detaching import at
from torchmemlint.rules.told import Told
from torchmemlint.syntax import cst
from torchmemlint.syntax.text import text_of


def not_in_place(call: WrittenCall | None) -> tuple[Edit, ...]:
    """`inplace=True` becomes `inplace=False` in the call that builds or applies an activation."""
    found = inplace_argument(call) if call is not None else None
    return call.replacing(found, "False") if call is not None and found is not None and shown(found) == "True" else ()


def out_of_place(told: Told) -> tuple[Edit, ...]:
    """`x += y` becomes `x = x + y`, `x.relu_()` becomes `x = x.relu()`, and a call loses its `inplace=True`."""
    piece = told.piece
    if piece is None:
        return ()
    for node in at(piece, told.span, cst.AugAssign):
        if isinstance(node.target, cst.Name):
            sign = text_of(node.operator).strip().removesuffix("=")
            right = piece.written(node.value)
            atoms = cst.Name | cst.Attribute | cst.Call | cst.Subscript | cst.Integer | cst.Float
            if not isinstance(node.value, atoms):
                right = f"({right})"
            return (Edit(told.span, f"{node.target.value} = {node.target.value} {sign} {right}"),)
    match told.call.node if told.call is not None else None:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=method)) if method.value.endswith("_"):
            if told.statement != told.span or method.value in _WITHOUT_TWIN:
                return ()
            start = told.span.start
            renamed = Edit(piece.span(method), method.value.rstrip("_"))
            return (Edit(Span(start, start), f"{name} = "), renamed)
    return not_in_place(told.call)


# In-place methods that have no twin which returns a new tensor.
_WITHOUT_TWIN = frozenset(
    "apply_ cauchy_ copy_ exponential_ fill_ fill_diagonal_ geometric_ log_normal_ map_ map2_ normal_ random_ "
    "set_ share_memory_ uniform_ zero_".split()
)


def inplace_argument(call: WrittenCall) -> cst.BaseExpression | None:
    """The expression given for `inplace`, by keyword or position, by the name that is called ("nn.ELU", "F.elu")."""
    name = call.callee.rpartition(".")[2]
    if name in activations.INPLACE_POSITION:
        return call.argument("inplace", activations.INPLACE_POSITION[name])
    kind = activations.functional(f"torch.nn.functional.{name}")
    position = activations.function_inplace_position(kind.rpartition(".")[2]) if kind is not None else None
    return call.argument("inplace", position)
