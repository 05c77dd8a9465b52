"""What detaches (`.detach()`, `.data`) and has nothing left to detach once a pass runs with gradients off."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.flow.fact.reasons import Reason
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.separating import place_of
from torchmemlint.rules.told import Told
from torchmemlint.syntax import statements

_DETACHING = re.compile(r"(\)*)(\s*\.(?:detach\(\)|data))")


def needless_detaching(told: Told) -> Iterator[Edit]:
    """Yield what takes away all that detaches what a pass gives, once its statement runs with gradients off."""
    if not told.case.hands_back:  # what the pass has not made keeps its graph there, too
        yield from _in_its_statement(told)
        yield from _behind_it(told)


def _in_its_statement(told: Told) -> Iterator[Edit]:
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


def _behind_it(told: Told) -> Iterator[Edit]:
    """Yield what takes away `name.detach()` behind the statement, as long as the name holds what the pass gives."""
    source = told.facts.source
    statement = statements.innermost(source.statements, told.statement, source.rows)
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _comes_from(value, told):
            for one in statements.behind(source.statements, told.statement, source.rows):
                changes = any(_changes(node, name) for node in ast.walk(one))
                if changes and not isinstance(one, ast.Assign):
                    return
                whole = one.value if isinstance(one, ast.Assign) else None
                if _only_detaches(one, name):
                    yield from _row_of(told.facts, one)
                    return
                for held in _detached(one, name, whole):
                    start, end = (source.span_of(place_of(node)).end for node in (held.value, held))
                    cut = Span(start, Position(end.row, end.column + len("()")))
                    if cut.text(source.rows) == ".detach()":
                        yield Edit(cut, "")
                if changes:
                    return


def _cuts(told: Told) -> bool:
    """Is `data` what detaches the result of a pass? That of a packed sequence is what it holds."""
    packs = any("pack_" in row or "PackedSequence" in row for row in told.facts.source.rows)
    return told.case.reason is Reason.DETACHED and not packs


def _only_detaches(statement: ast.stmt, name: str) -> bool:
    """Is it `name = name.detach()`?"""
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=to)],
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr="detach"), args=[], keywords=[]),
        ):
            return to == of == name
    return False


def _row_of(facts: FileFacts, statement: ast.stmt) -> Iterator[Edit]:
    """Yield what takes a statement away with its row, if it has that for itself."""
    place = facts.source.span_of(place_of(statement))
    first, last = place.start.row, place.end.row
    if first == last and facts.source.rows[first - 1].strip() == place.text(facts.source.rows):
        yield Edit(Span(Position(first, 1), Position(last + 1, 1)), "")


def _detached(statement: ast.stmt, name: str, whole: ast.expr | None) -> Iterator[ast.Attribute]:
    """Yield each `name.detach` that is called in a statement, but for a value that is nothing else."""
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr="detach") as held, args=[], keywords=[]):
                if of == name and node is not whole:
                    yield held


def _changes(node: ast.AST, name: str) -> bool:
    """Does a part of a statement bind a name anew, or change what it holds?"""
    match node:
        case ast.Name(id=of, ctx=ast.Store() | ast.Del()) | ast.Subscript(value=ast.Name(id=of), ctx=ast.Store()):
            return of == name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr=method)):
            return of == name and method.endswith("_")
        case ast.arg(arg=of):
            return of == name
    return False


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
