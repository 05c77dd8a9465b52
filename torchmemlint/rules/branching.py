"""Branches of an `if` that all run a pass for nothing: one block around the `if` says so once."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmemlint.findings import Applicability, Edit, Fix, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.knowledge import torch_api
from torchmemlint.rules.guarding import around_statements, wrap
from torchmemlint.rules.separating import place_of
from torchmemlint.rules.told import Told
from torchmemlint.rules.undetaching import needless_detaching
from torchmemlint.syntax import statements


def branching(told: Told) -> ast.If | None:
    """The `if` that a pass stands in a branch of, if all branches do the same with gradients off; None otherwise.

    Each of them is short: it assigns the same variables, or returns, and what the others give has no graph either.
    """
    source = told.facts.source
    *outer, _ = (None, *statements.around(source.statements, told.span, source.rows))
    heads: list[ast.If] = []
    for one in reversed(outer):
        if not isinstance(one, ast.If) or (heads and one.orelse != [heads[-1]]):
            break
        heads.append(one)
    if not heads or not heads[0].body:
        return None
    ends = [_end(branch, source.rows) for branch in _branches(heads[-1])]
    if len(ends) < 2 or None in ends or len(set(ends)) > 1:
        return None
    return heads[-1]


def around_branches(passes: Sequence[Told]) -> Fix | None:
    """Run a whole `if` with gradients off, whose branches run some passes; None if another branch may give a graph."""
    facts = passes[0].facts
    head = branching(passes[0])
    if head is None:
        return None
    spans = [told.span for told in passes]
    for branch in _branches(head):
        last = branch[-1]
        found = any(facts.source.span_of(place_of(one)).contains(span) for one in branch for span in spans)
        if not found and not _is_cut(last):
            return None
    fixes = [around_statements([told]) for told in passes]
    if any(fix is None or not fix.edits for fix in fixes):
        return None
    is_safe = all(fix is not None and fix.applicability is Applicability.SAFE for fix in fixes)
    needless = tuple(edit for told in passes for edit in needless_detaching(told))
    trust = Applicability.SAFE if is_safe else Applicability.UNSAFE
    return _wrapped(facts, facts.source.span_of(place_of(head)), trust, needless)


def _wrapped(facts: FileFacts, span: Span, trust: Applicability, needless: tuple[Edit, ...]) -> Fix | None:
    fix = wrap(facts, span, trust, besides=needless)
    return fix if fix is not None and fix.edits else None


def _branches(head: ast.If) -> Iterator[list[ast.stmt]]:
    """Yield the branches of an `if`; an empty one where there is no `else`."""
    yield head.body
    match head.orelse:
        case [ast.If() as further]:
            yield from _branches(further)
        case other:
            yield other


def _end(branch: list[ast.stmt], rows: Sequence[str]) -> str | None:
    """What a branch of one statement assigns, or that it returns, behind what prepares it; None of any other."""
    match branch:
        case [*before, ast.Assign(targets=targets)] if all(map(_prepares, before)):
            return " = ".join(map(ast.unparse, targets))
        case [*before, ast.Return(value=value)] if value is not None and all(map(_prepares, before)):
            return "return"
    return None


def _prepares(statement: ast.stmt) -> bool:
    """Does a statement only make something of what is written there, `criterion = nn.L1Loss(reduction="none")`?"""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(args=given, keywords=named)):
            return all(isinstance(one, ast.Constant) for one in (*given, *(one.value for one in named)))
        case ast.Assign(targets=[ast.Name()], value=value):
            return isinstance(value, ast.Constant)
    return False


def _is_cut(statement: ast.stmt) -> bool:
    """Is what a statement assigns or returns read, or detached?"""
    value = statement.value if isinstance(statement, ast.Assign | ast.Return) else None
    while value is not None:
        match value:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) | ast.Attribute(value=inner, attr=name):
                if name in torch_api.GRAPHLESS:
                    return True
                value = inner
            case ast.Subscript(value=inner):
                value = inner
            case _:
                return False
    return False
