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
    return _encodes(outline) or _pairs(outline, cls)


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


# -- pairs of rows ---------------------------------------------------------------------------------------------------

_SUMMING = frozenset({"sum", "mean", "norm", "vector_norm"})
_COMPARING = frozenset({"cosine_similarity", "pairwise_distance"})
_COMPARING_LAYERS = frozenset({"CosineSimilarity", "PairwiseDistance"})
_PAIRING = frozenset({"sub", "mul", *_COMPARING})
_ALONG = frozenset({"expand", "expand_as", "repeat", "broadcast_to"})


def _pairs(outline: Outline, cls: ClassInfo | None) -> bool:
    """Is something computed of two tensors that are spread against each other, and may be added up?"""
    calls = outline.calls
    by_layer = cls is not None and not cls.outline.names.isdisjoint(_COMPARING_LAYERS)
    if calls.isdisjoint(_SUMMING) and calls.isdisjoint(_COMPARING) and not by_layer:
        return False
    if calls.isdisjoint(("unsqueeze", "view", "reshape")) and not any(map(_puts_in, outline.nodes)):
        return False
    spread: set[str] = set()
    for node in outline.nodes:
        if isinstance(node, ast.Assign) and _is_spread(node.value, spread):
            spread.update(target.id for target in node.targets if isinstance(target, ast.Name))
    for node in outline.nodes:
        match node:
            case ast.BinOp(op=ast.Sub() | ast.Mult(), left=left, right=right):
                pass
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[left, right, *_]) if (
                name in _PAIRING or by_layer
            ):
                pass
            case ast.Call(func=ast.Attribute(attr="sub" | "mul", value=left), args=[right]):
                pass
            case _:
                continue
        if _is_spread(left, spread) and _is_spread(right, spread):
            return True
    return False


def _puts_in(node: ast.AST) -> bool:
    """`x[:, None]`."""
    if not isinstance(node, ast.Subscript):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(
        (isinstance(part, ast.Constant) and part.value is None)
        or (isinstance(part, ast.Attribute) and part.attr == "newaxis")
        for part in parts
    )


def _is_spread(node: ast.expr, names: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.Subscript():
            return _puts_in(node)
        case ast.Call(func=ast.Attribute(attr="unsqueeze")):
            return True
        case ast.Call(func=ast.Attribute(attr=name, value=owner)) if name in _ALONG:
            return _is_spread(owner, names)
        case ast.Call(func=ast.Attribute(attr="view" | "reshape"), args=sizes):
            return any(isinstance(size, ast.Constant) and size.value == 1 for size in sizes)
    return False
