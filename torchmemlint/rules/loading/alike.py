"""Loaders that a block makes alike, batches that a statement moves: what is changed of one is changed of all."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

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
    if wanted is not None and source.span_of(place_of(wanted)) != told.span:
        return  # the statement assigns what something else makes of the loader
    for one in block:
        made = _made(one)
        if one is not own and made is not None and wanted is not None and _manner(made) == _manner(wanted):
            call = call_at(facts, source.span_of(place_of(made)))
            if call is not None:
                yield call


def workers_beside(told: Told) -> str:
    """Return the number of workers that other loaders are given, as it is written; "" without one, or if they differ.

    It is a number that all of the file have, or a name that those have which are made before, around this one.
    """
    source = told.facts.source
    if told.call is None:
        return ""
    callee = told.call.callee
    heads = statements.around(source.statements, told.span, source.rows)
    blocks = (source.statements, *(block for head in heads for block in statements.blocks(head)))
    before = [one for block in blocks for head in heads if head in block for one in block[: block.index(head)]]
    near = {*_workers([one for one in before if not statements.is_compound(one)], callee)}
    found = near or {one for one in _workers(source.statements, callee) if one.isdecimal()}
    return next(iter(found)) if len(found) == 1 and not found & {"", "0"} else ""


def _workers(within: Iterable[ast.stmt], callee: str) -> Iterator[str]:
    """Yield the numbers of workers that calls of this name are given; "" for what is no number and no name."""
    for node in (node for one in within for node in ast.walk(one)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == callee:
            for one in node.keywords:
                if one.arg == "num_workers":
                    text = ast.unparse(one.value)
                    yield text if text.replace(".", "").isidentifier() or text.isdecimal() else ""


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
