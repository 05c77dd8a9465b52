"""Loops whose iterations each work on a batch of their own: a loader's next one, or a piece of a larger batch.

Their graphs have nothing but parameters in common, so that each can be differentiated as soon as it is there.
"""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.facts import MicroBatches
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Constant, Container, Known, LoopMark, Tensor, Unknown, Value
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
    if it.recording and it.frame.loops:
        _note(it, it.frame.loops[-1], element, node, passes=True)


def drawn(it: Interpreter, element: Value, node: cst.BaseExpression) -> None:
    """`next(batches)` in a loop."""
    if it.recording and it.frame.loops:
        _note(it, it.frame.loops[-1], element, node, passes=False)


def moved(it: Interpreter, owner: Unknown) -> None:
    """What a loop runs over is brought to the accelerator piece by piece: each is a batch."""
    if not it.recording or owner.made is None:
        return
    for mark in reversed(it.frame.loops):
        over = mark.node.iter if isinstance(mark.node, cst.For) else None
        if over is not None and _is_or_wraps(over, owner.made.site.node):
            how = "gives a batch that is moved to the device in each iteration"
            it.facts.micro_batches.setdefault(mark, MicroBatches(it.site(over), how, True))
            return


def _note(it: Interpreter, mark: LoopMark, element: Value, node: cst.BaseExpression, *, passes: bool) -> None:
    if _is_loaded(element):
        how = "gives the loader's next batch in each iteration"
        it.facts.micro_batches[mark] = MicroBatches(it.site(node), how, passes)
    elif _is_piece(it, element):
        how = "gives a piece of a larger batch in each iteration"
        it.facts.micro_batches[mark] = MicroBatches(it.site(node), how, False)


def _is_or_wraps(iterable: cst.CSTNode, node: cst.CSTNode) -> bool:
    """`loader`, `enumerate(loader)`, `tqdm(zip(a, b))`."""
    if iterable is node:
        return True
    return isinstance(iterable, cst.Call) and any(_is_or_wraps(arg.value, node) for arg in iterable.args)


def _is_loaded(element: Value) -> bool:
    match element:
        case Known(role="batch", qualified="whole"):
            return True
        case Container(items=items) if items:
            return any(_is_loaded(item) for item in items)
    return False


def _is_piece(it: Interpreter, element: Value) -> bool:
    match element:
        case Known(role="batch", qualified="piece"):
            return True
        case Container(items=items) if items:
            return any(_is_piece(it, item) for item in items)
    return made(element) in it.facts.pieces


def made(value: Value) -> Site | None:
    """The place of the operation that made a value."""
    match value:
        case Tensor(made=site):
            return site
        case Unknown(made=origin) if origin is not None:
            return origin.site
    return None
