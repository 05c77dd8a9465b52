"""Whether a file has tensors made on an accelerator unless something else is said."""

from __future__ import annotations

import ast

from torchmemlint.flow.program import Program
from torchmemlint.syntax.outline import dotted

_SETTING = frozenset({"set_default_tensor_type", "set_default_device"})


def is_accelerator(program: Program) -> bool:
    """Does it call `torch.set_default_tensor_type("torch.cuda.FloatTensor")` or `torch.set_default_device(device)`?"""
    for piece in program.source.pieces:
        if piece.outline is None or _SETTING.isdisjoint(program.summary(piece).calls):
            continue
        for node in ast.walk(piece.outline):
            if isinstance(node, ast.Call) and _sets_accelerator(node, program):
                return True
    return False


def _sets_accelerator(call: ast.Call, program: Program) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    match program.qualify(dotted(call.func)), given:
        case "torch.set_default_tensor_type", [ast.Constant(value=str(text))]:
            return ".cuda." in text
        case "torch.set_default_tensor_type", [kind]:
            return ".cuda." in program.qualify(dotted(kind))
        case "torch.set_default_device", [ast.Constant(value=str(text))]:
            return not text.startswith(("cpu", "meta"))
        case "torch.set_default_device", [ast.Constant(value=None)]:
            return False
        case "torch.set_default_device", [_]:
            return True  # a choice that is made elsewhere is between the host and an accelerator
    return False
