"""Where the calls that build or apply activations say how they work."""

from __future__ import annotations

import libcst as cst

from torchmemlint.knowledge import activations
from torchmemlint.rules.arguments import node_of
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of


def inplace_argument(call: Site) -> cst.BaseExpression | None:
    """The expression given for `inplace`, by keyword or position."""
    kind = kind_of(call)
    if kind is None or not isinstance(call.node, cst.Call):
        return node_of(call, "inplace")
    built = text_of(call.node.func).endswith(kind)
    position = activations.INPLACE_POSITION[kind] if built else activations.function_inplace_position(kind)
    return node_of(call, "inplace", position)


def kind_of(call: Site) -> str | None:
    """The activation that a call builds or applies, by the name it calls ("nn.ELU", "F.elu": ELU)."""
    if not isinstance(call.node, cst.Call):
        return None
    name = text_of(call.node.func).rpartition(".")[2]
    if name in activations.INPLACE_POSITION:
        return name
    kind = activations.functional(f"torch.nn.functional.{name}")
    return kind.rpartition(".")[2] if kind is not None else None
