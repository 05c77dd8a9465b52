"""Where the calls that build or apply activations say how they work."""

from __future__ import annotations

import libcst as cst

from torchmemlint.knowledge import activations
from torchmemlint.rules.arguments import node_of
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of


def inplace_argument(call: Site) -> cst.BaseExpression | None:
    """The expression given for `inplace`, by keyword or position."""
    if not isinstance(call.node, cst.Call):
        return None
    name = text_of(call.node.func).rpartition(".")[2]
    position = activations.INPLACE_POSITION.get(name)
    kind = activations.functional(f"torch.nn.functional.{name}")
    if position is None and kind is not None:
        position = activations.function_inplace_position(kind.rpartition(".")[2])
    return node_of(call, "inplace", position)
