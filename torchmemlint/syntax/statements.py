"""Statements around a place, as the standard parser's tree tells them."""

from __future__ import annotations

import ast
import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from torchmemlint.findings import Position, Span
from torchmemlint.syntax.text import characters

_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")  # as they stand in the text


def around(statements: Iterable[ast.stmt], place: Span, rows: Sequence[str]) -> list[ast.stmt]:
    """The statements around a place, outer ones first; `rows` are the file's."""
    found: list[ast.stmt] = []
    levels: Iterable[list[ast.stmt]] = [statements if isinstance(statements, list) else list(statements)]
    while True:
        holding = (one for level in levels if (one := _holding(level, place, rows)) is not None)
        one = next(holding, None)
        if one is None:
            return found
        found.append(one)
        levels = blocks(one)


def block_of(statements: Sequence[ast.stmt], place: Span, rows: Sequence[str]) -> Sequence[ast.stmt]:
    """The statements of the block that the innermost one around a place is in."""
    return _block(statements, around(statements, place, rows))


def behind(statements: Sequence[ast.stmt], place: Span, rows: Sequence[str]) -> Sequence[ast.stmt]:
    """The statements that follow the innermost one around a place, in its block."""
    heads = around(statements, place, rows)
    block = _block(statements, heads)
    return block[block.index(heads[-1]) + 1 :] if block else ()


def _block(statements: Sequence[ast.stmt], heads: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    levels = (statements, *(block for head in heads for block in blocks(head)))
    return next((block for block in levels if heads and heads[-1] in block), ())


def _holding(block: list[ast.stmt], place: Span, rows: Sequence[str]) -> ast.stmt | None:
    """The statement of a block around a place: the last that begins before it, if any."""
    start = place.start
    before = rows[start.row - 1][: start.column - 1] if start.row <= len(rows) else ""
    column = start.column - 1 if before.isascii() else len(before.encode("utf-8", "surrogatepass"))
    number = bisect_right(block, (start.row, column), key=lambda one: (one.lineno, one.col_offset))
    return block[number - 1] if number and _holds(block[number - 1], place, rows) else None


def below(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements of the blocks of a statement."""
    return itertools.chain.from_iterable(blocks(statement))


def blocks(statement: ast.stmt | ast.excepthandler | ast.match_case) -> Iterator[list[ast.stmt]]:
    """The blocks of a statement."""
    for name in _BLOCKS:
        held = getattr(statement, name, [])
        if held and isinstance(held[0], ast.stmt):
            yield held
        else:
            for part in held:
                yield from blocks(part)


def span_around(statements: Iterable[ast.stmt], place: Span, rows: Sequence[str]) -> Span:
    """The innermost statement around a place; of a compound statement only its header. The place where none is."""
    found = innermost(statements, place, rows)
    if found is None:
        return place
    span = _span(found, rows)
    inner = _first(found)
    if inner is None:
        return span
    return Span(span.start, min(span.end, max(place.end, _header_end(span.start, _begin(inner, rows), rows))))


def innermost(statements: Iterable[ast.stmt], place: Span, rows: Sequence[str]) -> ast.stmt | None:
    """The innermost statement around a place; None for a place in a decorator, or in what an `except` names."""
    found = around(statements, place, rows)
    inner = _first(found[-1]) if found else None
    return None if not found or (inner is not None and place.start >= _begin(inner, rows)) else found[-1]


def assigned(statement: ast.stmt | None) -> set[str]:
    """The variables that a statement assigns; none if it assigns anything else."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    parts = [one for target in targets for one in (target.elts if isinstance(target, ast.Tuple) else [target])]
    names = {one.id for one in parts if isinstance(one, ast.Name)}
    return names if len(names) == len(parts) else set()


def is_compound(statement: ast.stmt) -> bool:
    """Has it blocks?"""
    return isinstance(statement, ast.Match) or _first(statement) is not None


def _first(statement: ast.stmt) -> ast.stmt | None:
    """The first statement below the header of a statement; None of a `match`, whose patterns stand between others."""
    return None if isinstance(statement, ast.Match) else next(below(statement), None)


def alone(statement: ast.stmt, rows: Sequence[str]) -> tuple[list[str], int]:
    """The lines of a statement by itself, each where it stood in its row, and the row of the first.

    A compound statement is its header with a `pass` below. One that is indented has an `if` above.
    """
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    inner = _first(statement)
    lines = rows[first - 1 : last]
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    if inner is not None:
        start, body = _span(statement, rows).start, _begin(inner, rows)
        header = _header_end(start, body, rows)
        if header != body:
            lines = [*rows[first - 1 : header.row], f"{indent}    pass"]
    if isinstance(statement, ast.If) and lines[0].startswith("elif", len(indent)):
        lines = [f"{indent}  if{lines[0][len(indent) + 4 :]}", *lines[1:]]
    if lines[0][:1].isspace():
        lines, first = ["if 1:", *lines], first - 1
    return [f"{line}\n" for line in lines], first


def _begin(statement: ast.stmt, rows: Sequence[str]) -> Position:
    """Where a statement, or its first decorator, begins."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    start = _span(statement, rows).start
    if not decorators:
        return start
    row = min(decorator.lineno for decorator in decorators)
    return min(start, Position(row, start.column))


def _header_end(start: Position, body: Position, rows: Sequence[str]) -> Position:
    """The end of the last row of a header: blank lines and comments may stand between it and the body."""

    def line(row: int) -> str:
        return rows[row - 1].rstrip()

    if line(body.row)[: body.column - 1].strip():
        return body  # on the header's own row
    row = body.row - 1
    while row > start.row and (not line(row).strip() or line(row).lstrip().startswith("#")):
        row -= 1
    return Position(row, len(line(row)) + 1)


def _holds(statement: ast.stmt, place: Span, rows: Sequence[str]) -> bool:
    if not statement.lineno <= place.start.row <= place.end.row <= (statement.end_lineno or statement.lineno):
        return False
    return _span(statement, rows).contains(place)


def _span(statement: ast.stmt, rows: Sequence[str]) -> Span:
    first, last, end = statement.lineno, statement.end_lineno or statement.lineno, statement.end_col_offset or 0
    return Span(
        Position(first, characters(rows[first - 1], statement.col_offset) + 1),
        Position(last, characters(rows[last - 1], end) + 1),
    )
