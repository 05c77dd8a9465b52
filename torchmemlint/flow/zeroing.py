"""Gradients that are set to zero and so stay allocated: `zero_grad(set_to_none=False)`, `p.grad.zero_()`.

What a training step does to gradients before and after it stands in `flow.training`, in the same order of evaluation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.facts import GradientsZeroed
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import Program
from torchmemlint.flow.units import Unit
from torchmemlint.flow.values import Constant, LoopMark, Method, Tensor, Value
from torchmemlint.syntax.outline import dotted, dotted_text
from torchmemlint.syntax.text import string_value, text_of
from torchmemlint.syntax.walking import contains, inside, names_in

FILLING = frozenset({"zero_", "fill_"})
NAMES = FILLING | {"zero_grad"}
_PATHS = (".grad", ".grad.data")
# What puts numbers into a gradient that has to be there.
_WRITING = frozenset("add_ sub_ copy_ set_ index_add_ scatter_add_ index_copy_ lerp_ addcmul_ addcdiv_".split())
_UPDATING = frozenset("add_ sub_ addcdiv_ addcmul_ copy_".split())


def met(it: Interpreter, node: cst.Call, callee: Method, arguments: Arguments) -> None:
    """A call of a method that may set gradients to zero."""
    frames = (*it.frames, it.frame)
    if it.program is not it.main or not frames[0].recording:
        return
    shown: str | None = ""
    updates = False
    if callee.name == "zero_grad":
        parameter = "zero_grad"
        if not _keeps(arguments):
            return
    else:
        parameter = _gradient_of(node)
        loop = _loop_over(it, node, parameter) if parameter else None
        if loop is None or (callee.name == "fill_" and not _is_zero(arguments.get("0", "value"))):
            return
        updates = _updates(loop, parameter)
        shown = _parameters(it, loop, parameter) or (f"`{parameter}` is updated by it" if updates else None)
    if shown is None:
        return
    statement = it.frame.statement
    it.facts.gradients_zeroed[(it.site(node), frames[0].function)] = GradientsZeroed(
        it.site(node),
        it.scope,
        text_of(node.func),
        parameter,
        shown,
        updates,
        frames[0].function,
        it.tick(),
        tuple(test for frame in frames for test in frame.tests),
        statement.node if statement is not None else None,
    )


def _keeps(arguments: Arguments) -> bool:
    """`zero_grad(set_to_none=False)`: it is the only parameter. A default that is handed on is somebody's choice."""
    given = arguments.find("set_to_none", "0")
    return given is not None and isinstance(given.node, cst.Name) and given.node.value == "False"


def _is_zero(value: Value | None) -> bool:
    return isinstance(value, Constant) and value.known and value.value == 0


def _gradient_of(node: cst.Call) -> str:
    """`p` in `p.grad.zero_()` and `p.grad.data.zero_()`; "" where it is something else."""
    path = dotted_text(node.func.value) if isinstance(node.func, cst.Attribute) else ""
    ending = next((ending for ending in _PATHS if path.endswith(ending)), "")
    name = path.removesuffix(ending)
    return name if ending and "." not in name else ""


def _loop_over(it: Interpreter, node: cst.Call, name: str) -> LoopMark | None:
    """The loop whose variable it is."""
    for mark in reversed(it.frame.loops):
        loop = mark.node
        if isinstance(loop, cst.For) and contains(loop.body, node) and name in names_in(loop.target):
            return mark
    return None


def _parameters(it: Interpreter, loop: LoopMark, name: str) -> str:
    """What shows that the loop runs over parameters; "" where nothing does."""
    value = it.state.vars.get(name)
    if isinstance(value, Tensor) and value.producer == "parameter":
        return f"`{name}` runs over a module's parameters"
    head = loop.node.iter if isinstance(loop.node, cst.For) else None
    for part in inside(head) if head is not None else ():
        match part:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="parameters" | "named_parameters"))):
                return f"`{name}` runs over a module's parameters"
            case cst.Index(value=cst.SimpleString() as key) if string_value(key) == "params":
                return f"`{name}` runs over an optimizer's parameters"
    return ""


def _updates(loop: LoopMark, name: str) -> bool:
    """Does the loop itself make the step: `p -= lr * p.grad`, `p.data.add_(...)`?"""
    body = loop.node.body if isinstance(loop.node, cst.For) else None
    for part in inside(body) if body is not None else ():
        match part:
            case cst.AugAssign(target=target) if dotted_text(target) in (name, f"{name}.data"):
                return True
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))) if method in _UPDATING:
                if dotted_text(owner) in (name, f"{name}.data"):
                    return True
    return False


def gradients_are_written(program: Program) -> bool:
    """Does the file put something into `.grad` itself? Then whatever follows may count on its being there."""
    for outline in program.outlines():
        for path, methods in outline.methods.items():
            if path.endswith(_PATHS) and not _WRITING.isdisjoint(methods):
                return True
    pieces = (piece for piece in program.source.pieces if piece.outline is not None and "grad" in piece.text)
    return any(_stores_gradient(node) for piece in pieces for node in ast.walk(piece.outline or ast.Pass()))


def _stores_gradient(node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add) and _is_gradient(node.target)
    if isinstance(node, ast.Assign) and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        return any(_is_gradient(target) for target in node.targets)
    return False


def _is_gradient(target: ast.expr) -> bool:
    """`p.grad`, `p.grad.data`, `p.grad[0]`."""
    while isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and target.attr == "data"):
        target = target.value
    return isinstance(target, ast.Attribute) and target.attr == "grad"


def is_met(unit: Unit) -> bool:
    """Does a function set gradients to zero? (`flow.relevance` asks.)"""
    if unit.outline.calls.isdisjoint(NAMES):
        return False
    return any(_is_sign(call) for call in unit.nodes(ast.Call))


def _is_sign(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in NAMES:
        return False
    if call.func.attr in FILLING:
        return dotted(call.func.value).endswith(_PATHS)
    return any(isinstance(value, ast.Constant) and value.value is False for value in _given(call))


def _given(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    for keyword in call.keywords:
        yield keyword.value
