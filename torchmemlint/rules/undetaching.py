"""What detaches (`.detach()`, `.data`) and has nothing left to detach once a pass runs with gradients off."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.flow.fact.reasons import Reason
from torchmemlint.rules.separating import place_of
from torchmemlint.rules.told import Told
from torchmemlint.syntax import statements
from torchmemlint.syntax.text import is_explained

_DETACHING = re.compile(r"(\)*)(\s*\.(?:detach\(\)|data))")


def needless_detaching(told: Told) -> Iterator[Edit]:
    """Yield what takes away all that detaches what a pass gives, in its statement: see `fixes/idle.py` for others."""
    if told.case.hands_back:  # what the pass has not made keeps its graph there, too
        return
    source = told.facts.source
    statement = statements.innermost(source.statements, told.statement, source.rows)
    for call in ast.walk(statement) if statement is not None else ():
        match call:
            case (
                ast.Attribute(value=inner, attr="data", ctx=ast.Load())
                | ast.Call(func=ast.Attribute(value=inner, attr="detach"), args=[], keywords=[])
            ):
                if not _comes_from(inner, told) or (isinstance(call, ast.Attribute) and not _cuts(told)):
                    continue
                if is_explained(source.rows, call.lineno, "detach"):  # the comment would be about nothing
                    continue
                kept, whole = source.span_of(place_of(inner)), source.span_of(place_of(call))
                behind = _DETACHING.fullmatch(Span(kept.end, whole.end).text(source.rows))
                if behind is None:
                    continue
                start = Position(whole.end.row, whole.end.column - len(behind[2]))
                if behind[1] == ")" and call is getattr(statement, "value", None) and "\n" not in behind[2]:
                    before = Position(kept.start.row, kept.start.column - 1)
                    yield Edit(Span(before, kept.start), "")
                    start = kept.end
                elif "\n" in behind[2]:
                    start = kept.end if not behind[1] else start
                yield Edit(Span(start, whole.end), "")


def _cuts(told: Told) -> bool:
    """Is `data` what detaches the result of a pass? That of a packed sequence is what it holds."""
    packs = any("pack_" in row or "PackedSequence" in row for row in told.facts.source.rows)
    return told.case.reason is Reason.DETACHED and not packs


def _comes_from(node: ast.expr, told: Told) -> bool:
    """Is a value computed of what a pass gives?"""
    span_of = told.facts.source.span_of
    while span_of(place_of(node)) != told.span:
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.UnaryOp(operand=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=made), args=[inner, *_]) if (
                made in _JOINING and told.facts.program.imported.get(name) == "torch"
            ):
                node = inner
            case ast.Call(func=inner) | ast.ListComp(elt=inner) | ast.GeneratorExp(elt=inner):
                node = inner
            case ast.BinOp(left=left, right=right):
                node = left if span_of(place_of(left)).contains(told.span) else right
            case ast.List(elts=parts) | ast.Tuple(elts=parts) if parts:
                node = next((one for one in parts if span_of(place_of(one)).contains(told.span)), parts[0])
            case _:
                return False
    return True


_JOINING = frozenset({"cat", "concat", "stack", "hstack", "vstack"})
