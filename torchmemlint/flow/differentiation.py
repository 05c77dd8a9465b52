"""Backward passes: what is differentiated, and what it proves about the values involved."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.arguments import Argument, Arguments, flag
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Constant, Container, Graph, Known, ModuleValue, Step, Tensor, Unknown, Value
from torchmemlint.syntax.text import text_of


def backward(it: Interpreter, node: cst.Call, owner: Value, arguments: Arguments, path: str) -> Value:
    """`loss.backward()`, `accelerator.backward(loss)`, `self.manual_backward(loss)`, ..."""
    first = arguments.get("0", "loss", "tensor")
    given = isinstance(first, Tensor | Container | Unknown)
    if given and not isinstance(owner, Tensor) and first is not None:
        _differentiate(it, node, first, arguments)
    else:
        _differentiate(it, node, owner, arguments)
    return Constant(None, True)


def gradients(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    """`torch.autograd.grad(outputs, inputs)`, `torch.autograd.backward(tensors)`."""
    outputs = arguments.get("0", "outputs", "tensors")
    if outputs is not None:
        _differentiate(it, node, outputs, arguments)
    create = flag(arguments, "create_graph", "4")
    graph = Graph.NONE if create is False else Graph.LIVE if create else Graph.UNKNOWN
    made = it.site(node)
    step = Step(made, "a gradient computed with create_graph=True carries a graph")
    return Tensor(
        graph,
        it.deep_origins(outputs) if outputs is not None and create is not False else frozenset(),
        (step,) if graph is Graph.LIVE else (),
        exact=False,
        producer="torch.autograd.grad",
        made=made,
    )


def _may_be_their_own(it: Interpreter, node: cst.Call, value: Value) -> bool:
    """Does the file define a `backward` of its own that `x.backward()` may mean: that of another engine of gradients?

    One that leads to a further backward (of a loss, of a wrapped tensor) is torch's in the end.
    """
    if node.args or not isinstance(value, Unknown):
        return False
    found = (cls.methods.get("backward") for cls in it.program.classes.values())
    return any(
        own is not None
        and own.syntax is not None
        and not own.syntax.decorator_list
        and len(own.syntax.args.args) == 1
        and "backward" not in own.outline.calls
        for own in found
    )


def _is_taken(it: Interpreter, node: cst.Call) -> bool:
    """`x = step.backward(x)`: torch's gives nothing back, so this may be an inverse, or a layer's own derivative."""
    return it.frame.assigned is node and text_of(node.func).endswith(".backward")


def _differentiate(it: Interpreter, node: cst.Call, value: Value, arguments: Arguments) -> None:
    if isinstance(value, ModuleValue | Known):
        it.effect("backward")
        return
    it.computed += 1
    site = it.site(node)
    for part in () if _is_taken(it, node) or _may_be_their_own(it, node, value) else _parts(it, value):
        it.prove(part, site)
    it.effect("backward")
    is_grad = not text_of(node.func).endswith("backward")
    retain = arguments.find("retain_graph", "3" if is_grad else "1")
    create = arguments.find("create_graph", "4" if is_grad else "2")
    kept = arguments.unknown_keywords or _maybe_true(retain) or _maybe_true(create)
    if not kept:
        for origin in it.deep_origins(value):
            it.spent_log.append((origin, site))


def _parts(it: Interpreter, value: Value) -> list[Value]:
    return list(it.elements(value)) if isinstance(value, Container) else [value]


def _maybe_true(argument: Argument | None) -> bool:
    if argument is None:
        return False
    value = argument.value
    return not (isinstance(value, Constant) and value.known and not value.value)
