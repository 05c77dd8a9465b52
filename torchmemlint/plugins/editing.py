"""Edits that fixes are made of. None can be made where the answer is `()`; the fix is then a hint."""

from __future__ import annotations

import ast

from torchmemlint.findings import Edit, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.plugins.calling import Call, span_of
from torchmemlint.rules.arguments import call_at
from torchmemlint.rules.findings import call_method
from torchmemlint.rules.guarding import put_under
from torchmemlint.syntax import cst
from torchmemlint.syntax.source_module import Site


def add_argument(facts: FileFacts, call: Call, text: str) -> tuple[Edit, ...]:
    """Edits that add an argument, as in `"max_entries=100_000"`, after the others, in the style of the call.

    `()` if a keyword of that name is given already, or may be in `**`.
    """
    written = call_at(facts, call.span)
    name = text.partition("=")[0].strip()
    if written is None or any(one.arg in (name, None) for one in call.node.keywords):
        return ()
    if len(call.node.args) == 1 and isinstance(call.node.args[0], ast.GeneratorExp):
        return ()  # it would need brackets of its own
    return written.adding(text)


def append_call(facts: FileFacts, value: Call | ast.expr, method: str) -> tuple[Edit, ...]:
    """Edits that put `.method()` after an expression, in brackets where it needs them."""
    span = value.span if isinstance(value, Call) else span_of(facts, value)
    piece = facts.source.piece_at(span)
    nodes = [node for node in piece.at(span) if isinstance(node, cst.BaseExpression)] if piece is not None else []
    return call_method(Site(piece, nodes[0]), method) if piece is not None and nodes else ()


def wrap_in(facts: FileFacts, place: Call | Span | ast.stmt, context: str) -> tuple[Edit, ...]:
    """Edits that put a statement under `with context:`, as in `"torch.no_grad()"`.

    The statement is the one around the place. `()` if its lines cannot be moved: they hold a string of several lines,
    or share a line with another statement.
    """
    if isinstance(place, Call):
        place = place.around[-1] if place.around else place.span
    span = place if isinstance(place, Span) else span_of(facts, place)
    return put_under(facts, facts.source.statement_span(span) if isinstance(place, Span) else span, context)
