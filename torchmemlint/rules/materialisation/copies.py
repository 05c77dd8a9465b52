"""Tensors that are copied where one that is there would do: `repeat` along a dimension of one, `cat` in a loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.program import Program
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import torch_api
from torchmemlint.rules.materialisation.surroundings import Surroundings
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import inside

_LOOKS = torch_api.METADATA | torch_api.METADATA_ATTRIBUTES
_READING = frozenset(  # methods and functions that make a tensor of their own of those that they are given
    "add sub mul div pow eq ne lt le gt ge masked_fill sum mean minimum maximum where cosine_similarity mse_loss "
    "l1_loss smooth_l1_loss exp log sigmoid tanh relu".split()
)
_JOINING = frozenset(f"torch.{name}" for name in torch_api.JOINERS)


@immutable()
class Repeated:
    """`x.unsqueeze(1).repeat(1, n, 1)` whose copies are only read."""

    site: Site  # the call of `repeat`
    put_in: Site  # where the dimension of size one comes from
    sizes: tuple[cst.BaseExpression, ...]
    axis: int  # the dimension that is repeated
    readings: tuple[Site, ...]  # what takes the result


@immutable()
class Growing:
    """`out = torch.cat([out, x])` in a loop that does nothing else with `out`."""

    site: Site  # the call
    target: str
    loop: Site


# -- repeat ----------------------------------------------------------------------------------------------------------


def repeated(program: Program) -> Iterator[Repeated]:
    """Copies along a dimension of size one, in the order of the file."""
    for piece in program.source.pieces:
        if ".repeat(" not in piece.text:
            continue
        near = Surroundings(piece)
        for node in near.nodes:
            match node:
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="repeat")), args=arguments):
                    found = _repeated(program, near, node, owner, list(arguments))
                    if found is not None:
                        yield found


def _repeated(
    program: Program, near: Surroundings, node: cst.Call, owner: cst.BaseExpression, arguments: list[cst.Arg]
) -> Repeated | None:
    if len(arguments) < 2 or any(argument.keyword is not None or argument.star for argument in arguments):
        return None
    sizes = tuple(argument.value for argument in arguments)
    along = [index for index, size in enumerate(sizes) if _number(size) != 1]
    if len(along) != 1 or _number(sizes[along[0]]) == 0:
        return None
    bound = near.bound_once(owner.value, near.scope(node)) if isinstance(owner, cst.Name) else None
    put_in = bound[0] if bound is not None else owner
    axis = _put_in(put_in, len(sizes))
    if axis is None or axis % len(sizes) != along[0]:
        return None
    readings = _readings(program, near, node)
    if not readings:
        return None
    piece = near.piece
    return Repeated(
        Site(piece, node), Site(piece, put_in), sizes, along[0], tuple(Site(piece, reading) for reading in readings)
    )


def _put_in(node: cst.BaseExpression, rank: int) -> int | None:
    """The dimension of size one that an expression has put in last, or left by a sum with `keepdim=True`."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="unsqueeze")), args=[cst.Arg(value=axis)]):
            return _number(axis)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="view" | "reshape")), args=sizes) if len(sizes) == rank:
            ones = [index for index, size in enumerate(sizes) if _number(size.value) == 1]
            return ones[0] if len(ones) == 1 else None
        case cst.Subscript(slice=elements):
            kinds = [element.slice for element in elements]
            none = [index for index, kind in enumerate(kinds) if _is_none(kind)]
            plain = all(_is_none(kind) or isinstance(kind, cst.Slice) for kind in kinds)
            return none[0] if len(none) == 1 and plain else None
    return None


def _is_none(part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Index) and isinstance(part.value, cst.Name) and part.value.value == "None"


def _number(node: cst.BaseExpression) -> int | None:
    match node:
        case cst.Integer(value=text):
            return int(text, 0)
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value=text)):
            return -int(text, 0)
    return None


def _readings(program: Program, near: Surroundings, node: cst.BaseExpression) -> list[cst.CSTNode] | None:
    """What takes an expression's value, where all of it only reads; None where something else does."""
    around = near.around(node)
    if isinstance(around, cst.AssignTarget | cst.Assign):
        target = around.targets[0].target if isinstance(around, cst.Assign) else None
        bound = near.bound_once(target.value, near.scope(node)) if isinstance(target, cst.Name) else None
        if bound is None:
            return None
        taken = [_reading(program, near, place) for place in bound[1]]
        return None if None in taken else [place for place in taken if place is not None and place not in bound[1]]
    place = _reading(program, near, node)
    return [place] if place is not None else None


def _reading(program: Program, near: Surroundings, node: cst.BaseExpression) -> cst.CSTNode | None:
    """The operation that reads an expression and makes a tensor of its own; the expression itself where its shape is
    all that is looked at; None where it is taken otherwise.
    """
    around = near.around(node)
    above = near.around(around) if around is not None else None
    match around:
        case cst.BinaryOperation() | cst.Comparison() | cst.ComparisonTarget():
            return around
        case cst.Attribute(attr=cst.Name(value=name)) if name in _LOOKS:
            return node
        case cst.Attribute(attr=cst.Name(value=name)) if isinstance(above, cst.Call) and above.func is around:
            return above if name in _READING else None
        case cst.Arg() if isinstance(above, cst.Call):
            name = program.qualify(dotted_text(above.func))
            return above if name.startswith("torch.") and name.rpartition(".")[2] in _READING else None
        case cst.Element() if isinstance(above, cst.List | cst.Tuple):
            given = near.around(above)
            call = near.around(given) if isinstance(given, cst.Arg) else None
            joined = isinstance(call, cst.Call) and program.qualify(dotted_text(call.func)) in _JOINING
            return call if joined else None
    return None


# -- cat in a loop ---------------------------------------------------------------------------------------------------


def growing(program: Program) -> Iterator[Growing]:
    """Tensors that a loop puts together piece by piece, in the order of the file."""
    for piece in program.source.pieces:
        if not any(f"{name}(" in piece.text for name in torch_api.JOINERS):
            continue
        near = Surroundings(piece)
        for node in near.nodes:
            if isinstance(node, cst.Assign) and len(node.targets) == 1:
                found = _growing(program, near, node, node.targets[0].target)
                if found is not None:
                    yield found


def _growing(
    program: Program, near: Surroundings, node: cst.Assign, target: cst.BaseAssignTargetExpression
) -> Growing | None:
    name = dotted_text(target)
    match node.value:
        case (
            cst.Call(func=func, args=[cst.Arg(value=cst.List(elements=parts) | cst.Tuple(elements=parts)), *_]) as call
        ):
            pass
        case _:
            return None
    if not name or program.qualify(dotted_text(func)) not in _JOINING:
        return None
    if sum(dotted_text(part.value) == name for part in parts) != 1 or len(parts) < 2:
        return None
    loop = near.nearest(node, cst.For, cst.While, cst.FunctionDef, cst.Lambda)
    if not isinstance(loop, cst.For | cst.While) or _is_used(near, loop, node, name):
        return None
    return Growing(Site(near.piece, call), name, Site(near.piece, loop))


def _is_used(near: Surroundings, loop: cst.For | cst.While, statement: cst.Assign, name: str) -> bool:
    """Does a loop assign or read a name besides, but for its shape?"""
    own = {id(node) for node in inside(statement)}
    if (
        sum(isinstance(node, cst.Name | cst.Attribute) and text_of(node) == name for node in inside(statement.value))
        > 1
    ):
        return True
    heads: list[cst.CSTNode] = [loop.test] if isinstance(loop, cst.While) else []
    for node in [below for part in (loop.body, *heads) for below in inside(part)]:
        if id(node) in own or not isinstance(node, cst.Name | cst.Attribute) or text_of(node) != name:
            continue
        around = near.around(node)
        if isinstance(around, cst.Attribute) and (around.value is not node or around.attr.value in _LOOKS):
            continue
        if isinstance(around, cst.Arg) and around.keyword is node:
            continue
        tested = isinstance(around, cst.Comparison | cst.If)
        if not tested and not _starts(near, node):
            return True
    return False


def _starts(near: Surroundings, node: cst.CSTNode) -> bool:
    """Is it the other branch of a condition that assigns the first part: `out = x if first else ...`?"""
    target = near.around(node)
    branch = near.nearest(node, cst.If, cst.Else, cst.For, cst.While)
    return isinstance(target, cst.AssignTarget) and isinstance(branch, cst.If | cst.Else)
