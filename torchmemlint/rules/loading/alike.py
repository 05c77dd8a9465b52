"""Loaders that a block makes alike, batches that a statement moves: what is changed of one is changed of all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.rules.arguments import WrittenCall, call_at
from torchmemlint.rules.separating import place_of
from torchmemlint.rules.told import Told
from torchmemlint.syntax import statements


def loaders_alike(told: Told) -> Iterator[WrittenCall]:
    """Yield the loader that a finding is about, and those of its block that are made with the same arguments."""
    facts, source = told.facts, told.facts.source
    if told.call is not None:
        yield told.call
    block = statements.block_of(source.statements, told.span, source.rows)
    own = statements.innermost(source.statements, told.span, source.rows)
    wanted = _made(own)
    for one in block:
        made = _made(one)
        if one is not own and made is not None and wanted is not None and _manner(made) == _manner(wanted):
            call = call_at(facts, source.span_of(place_of(made)))
            if call is not None:
                yield call


def _made(statement: ast.stmt | None) -> ast.Call | None:
    """The call whose result a statement assigns to one name."""
    match statement:
        case ast.Assign(targets=[ast.Name() | ast.Attribute()], value=ast.Call() as made):
            return made
    return None


def _manner(call: ast.Call) -> tuple[str, int, frozenset[str | None]]:
    return ast.unparse(call.func), len(call.args), frozenset(one.arg for one in call.keywords)


def moves_alike(told: Told) -> Iterator[WrittenCall]:
    """Yield the move of a batch that a finding is about, and those beside it in a tuple that are of the same kind."""
    facts, source = told.facts, told.facts.source
    if told.call is None:
        return
    yield told.call
    match statements.innermost(source.statements, told.span, source.rows):
        case ast.Assign(value=ast.Tuple(elts=parts)):
            calls = [one for one in parts if isinstance(one, ast.Call)]
            ways = {_way(one) for one in calls if source.span_of(place_of(one)) == told.span}
            for one in calls:
                call = call_at(facts, source.span_of(place_of(one))) if _way(one) in ways else None
                if call is not None and call.span != told.span:
                    yield call


def _way(call: ast.Call) -> tuple[str, str]:
    """The method that is called, and what it is given."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return name, ast.unparse(ast.Call(ast.Name(""), call.args, call.keywords))
