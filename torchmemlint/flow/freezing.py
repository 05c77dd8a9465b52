"""Modules whose parameters do not train: constructors that freeze what they build, and what such a module gives."""

from __future__ import annotations

import ast

from torchmemlint.flow import containers
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import Container, Graph, Tensor, Value
from torchmemlint.syntax.outline import dotted

_DEPTH = 3  # of containers in a result that are looked into


def freezes_itself(cls: ClassInfo) -> bool:
    """Does its constructor freeze all its parameters, perhaps unless an argument says otherwise?

    `self.requires_grad_(False)`, or a loop over `self.parameters()`; there, or in a method that it calls.
    """
    constructor = cls.method("__init__")
    if constructor is None:
        return False
    called = [cls.method(name) for name in sorted(constructor.outline.methods.get("self", ()))]
    return any(_freezes_all(method) for method in (constructor, *called) if method is not None)


def _freezes_all(method: Function) -> bool:
    outline = method.outline
    if "self.parameters" in outline.called and not outline.names.isdisjoint(("requires_grad_", "requires_grad")):
        return True
    return "self.requires_grad_" in outline.called and any(_turns_off(node) for node in outline.nodes)


def _turns_off(node: ast.AST) -> bool:
    """`self.requires_grad_(False)`."""
    match node:
        case ast.Call(args=[ast.Constant(value=False)]) | ast.Call(keywords=[ast.keyword(value=ast.Constant(False))]):
            return dotted(node.func) == "self.requires_grad_"
    return False


def result(it: Interpreter, value: Value, inputs: Graph, depth: int = 0) -> Value:
    """What a frozen module gives: its layers, which the walk of its code takes for such that train, add no graph."""
    if inputs is Graph.LIVE:
        return value
    if isinstance(value, Tensor) and value.carries_graph:
        if inputs is Graph.NONE:
            return replace(value, graph=Graph.NONE, origins=frozenset(), history=(), carried=frozenset())
        return replace(value, graph=Graph.UNKNOWN, history=())
    if isinstance(value, Container) and depth < _DEPTH:
        for key, element, _ in list(containers.entries(it, value)):
            it.state.heap[(value.oid, key)] = result(it, element, inputs, depth + 1)
        if value.items is not None:
            return replace(value, items=tuple(result(it, item, inputs, depth + 1) for item in value.items))
    return value
