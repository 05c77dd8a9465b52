"""Fixes that detach a value where it is kept: for people to look at, as nothing has proven that it is one tensor."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Fix, Span
from torchmemlint.flow.models.containers import ADDING
from torchmemlint.rules.findings import detach_fix
from torchmemlint.syntax.source_module import Piece, Site, SourceModule
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import inside


def detach_stored(source: SourceModule, span: Span) -> Fix | None:
    """Detach what is stored: by the call that stands there, or in the target that does."""
    piece = source.piece_at(span)
    if piece is None:
        return None
    for node in inside(piece.module):
        if isinstance(node, cst.Call) and _adds(node) and piece.span(node) == span:
            return detach_fix(Site(piece, node.args[0].value), safe=False)
    for target, value in _assignments(piece, span):
        if piece.span(target) == span:
            return detach_fix(Site(piece, value), safe=False)
    return None


def detach_given(source: SourceModule, span: Span) -> Fix | None:
    """Detach the argument that the call whose result is bound there is given: `out, h = rnn(x, h.detach())`."""
    piece = source.piece_at(span)
    if piece is None:
        return None
    for target, value in _assignments(piece, span):
        for argument in value.args if isinstance(value, cst.Call) else ():
            if text_of(argument.value) == text_of(target):
                return detach_fix(Site(piece, argument.value), safe=False)
    return None


def _adds(call: cst.Call) -> bool:
    """Does a call add one thing to a container?"""
    adds = isinstance(call.func, cst.Attribute) and call.func.attr.value in ADDING
    return adds and len(call.args) == 1 and not call.args[0].star


def _assignments(piece: Piece, span: Span) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Yield what stands there as (a part of) the one target of an assignment, with the value that is assigned."""
    for node in inside(piece.module):
        if isinstance(node, cst.AugAssign):
            target: cst.BaseExpression = node.target
        elif isinstance(node, cst.Assign) and len(node.targets) == 1:
            target = node.targets[0].target
        else:
            continue
        for part in inside(target):
            if isinstance(part, cst.BaseExpression) and piece.span(part) == span:
                yield part, node.value
