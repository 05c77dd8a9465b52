"""What the syntax of a function shows of tensors that are made whole where less would do (`flow.formulas`)."""

from __future__ import annotations

import ast

from torchmemlint.flow.program import ClassInfo
from torchmemlint.syntax.outline import Outline, dotted

_PROBABLE = frozenset({"softmax", "sigmoid"})
_PROBABLE_LAYERS = frozenset({"Softmax", "Softmax2d", "Sigmoid"})


def shows(outline: Outline, cls: ClassInfo | None) -> bool:
    """May a tensor be made whole that a fused operation, or one on indices, does without?"""
    calls = outline.calls
    if "log" in calls and not calls.isdisjoint(_PROBABLE):
        return True
    if "log" in calls and cls is not None and not cls.outline.names.isdisjoint(_PROBABLE_LAYERS):
        return True
    return _encodes(outline)


def _encodes(outline: Outline) -> bool:
    """Are classes written out as rows of zeros with a one?"""
    calls = outline.calls
    if "one_hot" in calls or ("scatter_" in calls and any("zeros" in name for name in calls)):
        return True
    return "eye" in calls and any(
        isinstance(node, ast.Subscript) and _innermost_call(node.value) == "eye" for node in outline.nodes
    )


def _innermost_call(node: ast.expr) -> str:
    """The name that begins a chain of calls: "eye" of `torch.eye(3).to(device)`."""
    name = ""
    while isinstance(node, ast.Call):
        name = dotted(node.func).rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        node = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return name
