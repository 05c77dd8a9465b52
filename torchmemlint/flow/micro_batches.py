"""Loops whose iterations each work on a batch of their own: a loader's next one, or a piece of a larger batch.

Their graphs have nothing but parameters in common, so that each can be differentiated as soon as it is there.
"""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Constant, Container, Known, Tensor, Unknown, Value
from torchmemlint.syntax.source_module import Site

CUTTING = frozenset("chunk split tensor_split".split())  # methods and functions that give pieces of a tensor


def cut(it: Interpreter, node: cst.Call, arguments: Arguments, *, function: bool) -> None:
    """`x.chunk(4)`, `torch.split(x, 8)`: pieces along the first dimension, which is that of samples."""
    first = 1 if function else 0
    sizes = arguments.get(str(first), "chunks", "split_size", "split_size_or_sections", "indices_or_sections")
    if sizes is None or (isinstance(sizes, Constant) and isinstance(sizes.value, str)):
        return  # a string's split
    dimension = arguments.get(str(first + 1), "dim", "axis")
    if dimension is None or (isinstance(dimension, Constant) and dimension.known and dimension.value == 0):
        it.facts.pieces.add(it.site(node))


def iterated(it: Interpreter, value: Value, node: cst.BaseExpression) -> None:
    """What iterating over pieces yields are pieces; `node` is the expression that is iterated over."""
    if made(value) in it.facts.pieces:
        it.facts.pieces.add(it.site(node))


def entered(it: Interpreter, element: Value, node: cst.BaseExpression) -> None:
    """A loop over `node` gives `element` in each iteration: a fact where that is a batch of its own."""
    if not it.recording or not it.frame.loops:
        return
    how = _own_batch(it, element)
    if how:
        it.facts.micro_batches[it.frame.loops[-1]] = (it.site(node), how)


def moved(it: Interpreter, owner: Unknown) -> None:
    """What a loop runs over is brought to the accelerator piece by piece: each is a batch."""
    if not it.recording or owner.made is None:
        return
    for mark in reversed(it.frame.loops):
        over = mark.node.iter if isinstance(mark.node, cst.For) else None
        if over is not None and _is_or_wraps(over, owner.made.site.node):
            it.facts.micro_batches.setdefault(
                mark, (it.site(over), "gives a batch that is moved to the device in each iteration")
            )
            return


def _is_or_wraps(iterable: cst.CSTNode, node: cst.CSTNode) -> bool:
    """`loader`, `enumerate(loader)`, `tqdm(zip(a, b))`."""
    if iterable is node:
        return True
    return isinstance(iterable, cst.Call) and any(_is_or_wraps(arg.value, node) for arg in iterable.args)


def _own_batch(it: Interpreter, element: Value) -> str:
    match element:
        case Known(role="batch", qualified="whole"):
            return "gives the loader's next batch in each iteration"
        case Container(items=items) if items:
            return next((how for item in items if (how := _own_batch(it, item))), "")
        case Tensor() | Unknown() if made(element) in it.facts.pieces:
            return "gives a piece of a larger batch in each iteration"
        case Known(role="batch", qualified="piece"):
            return "gives a piece of a larger batch in each iteration"
    return ""


def made(value: Value) -> Site | None:
    """The place of the operation that made a value."""
    match value:
        case Tensor(made=site):
            return site
        case Unknown(made=origin) if origin is not None:
            return origin.site
    return None
