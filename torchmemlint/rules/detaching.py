"""Fixes that detach a value, or bring it to the host, where it is kept or given to what carries it on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torchmemlint.findings import Edit, Fix, Span
from torchmemlint.flow.models.containers import ADDING
from torchmemlint.rules.findings import call_method, detach_fix
from torchmemlint.syntax import cst
from torchmemlint.syntax.source_module import Piece, Site
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import inside


def detach_stored(piece: Piece, span: Span, *, safe: bool) -> Fix | None:
    """Detach what is stored: by the call or operation that stands there, or in the target that does."""
    for node in at(piece, span, cst.Call | cst.AugAssign):
        stored = _added(node) if isinstance(node, cst.Call) else _only_element(node.value)
        return detach_fix(Site(piece, stored), safe=safe) if stored is not None else None
    for _, target, value in _assignments(piece, span):
        added, one = _addend(target, value), _put_in(target, value)
        fix = detach_fix(Site(piece, one), safe=safe) if one is not None else None
        # What the target held before may have a graph, too: then all is detached.
        return fix if added is None else replace(detach_fix(Site(piece, added), safe=safe), narrower=fix)
    return None


def bring_to_host(piece: Piece, span: Span) -> tuple[Edit, ...]:
    """Bring to the host what the call that stands there adds to a container; nothing where that is not one thing."""
    added = (_added(call) for call in at(piece, span, cst.Call))
    return next((call_method(Site(piece, one), "cpu") for one in added if one is not None), ())


def detach_argument(piece: Piece, span: Span) -> Fix | None:
    """Detach the one argument of the call that stands there."""
    for call in at(piece, span, cst.Call):
        if len(call.args) == 1 and not call.args[0].star:
            return detach_fix(Site(piece, call.args[0].value), safe=False)
    return None


def detach_given(piece: Piece, span: Span) -> Fix | None:
    """Detach the argument that the call whose result is bound there is given: `out, h = rnn(x, h.detach())`."""
    for target, _, value in _assignments(piece, span):
        for argument in value.args if isinstance(value, cst.Call) else ():
            if text_of(argument.value) == text_of(target):
                return detach_fix(Site(piece, argument.value), safe=False)
    return None


def detach_written(piece: Piece, span: Span, *, safe: bool) -> Fix | None:
    """Detach the expression that stands there."""
    for value in at(piece, span, cst.BaseExpression):
        return detach_fix(Site(piece, value), safe=safe)
    return None


def at(piece: Piece, span: Span, kind: Any) -> Iterator[Any]:
    """Yield the nodes of a kind that stand there."""
    return (node for node in piece.at(span) if isinstance(node, kind))


def _only_element(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """What is added by `+= value`: the one element of a container that is written out, or the value itself."""
    if isinstance(value, cst.BaseComp):
        return None
    if not isinstance(value, cst.List | cst.Tuple | cst.Set | cst.Dict):
        return value
    only = value.elements[0] if len(value.elements) == 1 else None
    return only.value if isinstance(only, cst.Element | cst.DictElement) else None


def _addend(target: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """What is added to a target that is assigned the sum: `total = total + loss` is `total += loss`."""
    match value:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            name = text_of(target)
            return right if text_of(left) == name else left if text_of(right) == name else None
    return None


def _put_in(target: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """What an assignment of a value puts into its target, if it is one thing that is written there."""
    if isinstance(target, cst.Tuple | cst.List):
        return None
    one = _only_element(value)
    takes_several = isinstance(target, cst.Subscript) and any(isinstance(e.slice, cst.Slice) for e in target.slice)
    return None if takes_several and one is value else one


def _added(call: cst.Call) -> cst.BaseExpression | None:
    """What a call adds to a container, if it is one thing."""
    if not isinstance(call.func, cst.Attribute) or any(argument.star or argument.keyword for argument in call.args):
        return None
    name, arguments = call.func.attr.value, [argument.value for argument in call.args]
    if name in ADDING and len(arguments) == 1:
        return arguments[0]
    return arguments[1] if name == "insert" and len(arguments) == 2 else None


def _assignments(
    piece: Piece, span: Span
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, cst.BaseExpression]]:
    """Yield what stands there as a part of the one target of an assignment, with the target and its value.

    Of `a, b = c, d` each has its own; `out, h` of `out, h = rnn(x, h)` are one target.
    """
    for node in inside(piece.module):
        if isinstance(node, cst.AugAssign):
            target: cst.BaseExpression = node.target
        elif isinstance(node, cst.Assign) and len(node.targets) == 1:
            target = node.targets[0].target
        else:
            continue
        for inner, value in _pairs(target, node.value):
            for part in inside(inner):
                if isinstance(part, cst.BaseExpression) and piece.span(part) == span:
                    yield part, inner, value


def _pairs(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Yield the parts of a target with what each is assigned, where both are written out alike: `a, b = c, d`."""
    parts, values = _elements(target), _elements(value)
    if not parts or len(parts) != len(values):
        yield target, value
        return
    for one, other in zip(parts, values, strict=True):
        yield from _pairs(one, other)


def _elements(box: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a tuple or list consists of that is written out; nothing where a part of it is spread."""
    elements = box.elements if isinstance(box, cst.Tuple | cst.List) else ()
    return [] if any(isinstance(e, cst.StarredElement) for e in elements) else [element.value for element in elements]
