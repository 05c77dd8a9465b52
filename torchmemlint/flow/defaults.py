"""Layer classes that a parameter stands for unless a caller says otherwise: `norm_layer=nn.BatchNorm2d`."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import Function
from torchmemlint.flow.values import External, Value
from torchmemlint.knowledge import operations
from torchmemlint.syntax.outline import dotted_text


def layer_class(it: Interpreter, function: Function, parameter: cst.Param) -> Value | None:
    """The class of torch.nn that a parameter of a module's constructor has for a default; None where there is none.

    What stands in for it is another norm or another activation, of the same making.
    """
    if parameter.default is None or function.name != "__init__" or function.cls is None or not function.cls.is_module:
        return None
    path = dotted_text(parameter.default)
    qualified = it.program.qualify(path) if path else ""
    owner, _, name = qualified.rpartition(".")
    return External(qualified) if owner == "torch.nn" and name in operations.layers() else None
