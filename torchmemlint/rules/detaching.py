"""Fixes that detach a value where it is kept: for people to look at, as nothing has proven that it is one tensor."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Fix, Span
from torchmemlint.rules.findings import call_method
from torchmemlint.syntax.source_module import Piece, Site, SourceModule
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import inside


def detach_stored(source: SourceModule, span: Span) -> Fix | None:
    """Detach what is stored: by the call that stands there, or in the target that does."""
    for site in _stored(source, span):
        return _fix(site)
    return None


def detach_given(source: SourceModule, span: Span) -> Fix | None:
    """Detach the argument that the call whose result is bound there is given: `out, h = rnn(x, h.detach())`."""
    for piece, target, value in _assignments(source, span):
        if isinstance(value, cst.Call):
            for argument in value.args:
                if text_of(argument.value) == text_of(target):
                    return _fix(Site(piece, argument.value))
    return None


def _fix(site: Site) -> Fix:
    edits = call_method(site, "detach")
    return Fix(f"Detach `{text_of(site.node)}` from its graph", Applicability.UNSAFE, edits)


def _stored(source: SourceModule, span: Span) -> Iterator[Site]:
    piece = _piece(source, span)
    for node in inside(piece.module):
        if isinstance(node, cst.Call) and len(node.args) == 1 and not node.args[0].star and piece.span(node) == span:
            yield Site(piece, node.args[0].value)
    for piece, target, value in _assignments(source, span):
        if piece.span(target) == span and not isinstance(value, cst.Tuple | cst.List | cst.Dict):
            yield Site(piece, value)


def _assignments(source: SourceModule, span: Span) -> Iterator[tuple[Piece, cst.BaseExpression, cst.BaseExpression]]:
    """Yield what stands there as (a part of) the one target of an assignment, with the value that is assigned."""
    piece = _piece(source, span)
    for node in inside(piece.module):
        if isinstance(node, cst.AugAssign):
            target: cst.BaseExpression = node.target
        elif isinstance(node, cst.Assign) and len(node.targets) == 1:
            target = node.targets[0].target
        else:
            continue
        for part in inside(target):
            if isinstance(part, cst.BaseExpression) and piece.span(part) == span:
                yield piece, part, node.value


def _piece(source: SourceModule, span: Span) -> Piece:
    return next(piece for piece in reversed(source.pieces) if piece.first_row <= span.start.row)
