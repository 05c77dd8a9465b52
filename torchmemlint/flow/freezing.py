"""Modules whose parameters do not train: constructors that freeze what they build, and what such a module gives."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.flow import call_sites, containers
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import Container, Graph, Tensor, Value
from torchmemlint.knowledge import modules, torch_api
from torchmemlint.syntax.outline import dotted

_DEPTH = 3  # of containers in a result that are looked into


def freezes_itself(cls: ClassInfo, depth: int = 0) -> bool:
    """Does its constructor freeze all its parameters, perhaps unless an argument says otherwise?

    `self.requires_grad_(False)`, or a loop over `self.parameters()`; there, or in a method that it calls, or in each
    of the modules that it is made of.
    """
    constructor = cls.method("__init__")
    if constructor is None:
        return False
    called = [cls.method(name) for name in sorted(constructor.outline.methods.get("self", ()))]
    if any(_freezes_all(method) for method in (constructor, *called) if method is not None):
        return True
    return depth < _DEPTH and _is_made_of_frozen(constructor, depth)


def _is_made_of_frozen(constructor: Function, depth: int) -> bool:
    """Are all modules that a constructor builds of the project's classes, which freeze themselves?

    Of several that one attribute may become, one is enough: which it is, an argument says.
    """
    program = constructor.program
    for path in constructor.outline.called:
        qualified = program.qualify(path)
        if program.contracts.is_module_factory(qualified) or qualified.endswith((".Parameter", ".register_parameter")):
            return False
        if program.contracts.is_module_class(qualified) and modules.has_parameters(qualified) is not False:
            return False
    frozen: dict[str, bool] = {}
    for node in constructor.outline.nodes:
        match node:
            case ast.Assign(targets=[target], value=ast.Call() as made):
                built = [cls for cls in _built(program, made) if cls.is_module]
                if built:
                    path = dotted(target)
                    frozen[path] = frozen.get(path, False) or any(freezes_itself(cls, depth + 1) for cls in built)
    return bool(frozen) and all(frozen.values())


def _built(program: Program, call: ast.Call) -> Iterator[ClassInfo]:
    """The project's classes of which a call makes an object, or may: a function of the project chooses among them."""
    made = call_sites.itself(call)
    path = dotted(made.func) if isinstance(made, ast.Call) else ""
    cls = program.resolve_class(path)
    if cls is not None:
        yield cls
        return
    maker = program.find_function(path) or program.resolve(program.qualify(path))
    if not isinstance(maker, Function):
        return
    for node in maker.outline.nodes:
        match node:
            case ast.Return(value=ast.Call(func=func)):
                returned = maker.program.resolve_class(dotted(func))
                if returned is not None:
                    yield returned


def _freezes_all(method: Function) -> bool:
    outline = method.outline
    if "self.parameters" in outline.called and not outline.names.isdisjoint(torch_api.ASKING_FOR_GRADIENTS):
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
