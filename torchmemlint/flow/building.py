"""What a module's constructor calls in other files: which of that has a say in what the module will be.

Much of it only settles names and options (`self.post_init()` of a library's base class), and is asked for by every
model of a project.
"""

from __future__ import annotations

import ast

from torchmemlint.flow.program import Function, Program
from torchmemlint.knowledge import torch_api

_CHANGING = torch_api.ASKING_FOR_GRADIENTS | {"eval", "train", "load_state_dict", "set_grad_enabled"}


def has_a_say(function: Function, main: Program) -> bool:
    """Does a function build something, freeze or switch a module, give anything back, or run methods of the file that
    is analysed? (A constructor builds.)
    """
    outline = function.outline
    if function.name == "__init__" or not outline.names.isdisjoint(_CHANGING):
        return True
    if any(name[:1].isupper() or name.endswith("_hook") for name in outline.calls):
        return True
    if any(isinstance(node, ast.Return | ast.Yield) and node.value is not None for node in outline.nodes):
        return True
    called = outline.methods.get("self", set())
    return any(not called.isdisjoint(cls.methods) for cls in main.classes.values())
