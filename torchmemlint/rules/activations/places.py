"""Where the calls that build or apply activations say how they work."""

from __future__ import annotations

from torchmemlint.knowledge import activations
from torchmemlint.rules.arguments import WrittenCall
from torchmemlint.syntax import cst


def inplace_argument(call: WrittenCall) -> cst.BaseExpression | None:
    """The expression given for `inplace`, by keyword or position, by the name that is called ("nn.ELU", "F.elu")."""
    name = call.callee.rpartition(".")[2]
    if name in activations.INPLACE_POSITION:
        return call.argument("inplace", activations.INPLACE_POSITION[name])
    kind = activations.functional(f"torch.nn.functional.{name}")
    position = activations.function_inplace_position(kind.rpartition(".")[2]) if kind is not None else None
    return call.argument("inplace", position)
