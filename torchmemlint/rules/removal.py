"""Edits that take a statement out of a program."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.guarding import ends_its_row
from torchmemlint.syntax import statements


def removing(facts: FileFacts, call: Span) -> tuple[Edit, ...]:
    """Edits that remove a call that is a statement with its row, and every `if` that holds nothing else.

    Where nothing would be left of another block, `pass` takes its place. () where the statement shares its row.
    """
    source = facts.source
    *outer, found = (None, *statements.around(source.statements, call, source.rows))
    before = source.rows[call.start.row - 1][: call.start.column - 1]
    if found is None or source.statement_span(call) != call or before.strip() or not ends_its_row(facts, call):
        return ()
    for around in reversed(outer):
        if around is None or all(len(block) > 1 for block in statements.blocks(around) if found in block):
            return (Edit(_rows(source.rows, found.lineno, call.end.row), ""),)
        alternative = source.rows[around.lineno - 1].lstrip().startswith("elif")
        if not isinstance(around, ast.If) or around.orelse or alternative:
            break
        found = around
    return (Edit(call, "pass"),)


def _rows(rows: Sequence[str], first: int, last: int) -> Span:
    """Whole rows, with comment rows above that speak of nothing else, and one of the blank rows around them."""

    def is_blank(row: int) -> bool:
        return not 1 <= row <= len(rows) or not rows[row - 1].strip()

    if is_blank(last + 1):
        while not is_blank(first - 1) and rows[first - 2].lstrip().startswith("#"):
            first -= 1
        last += is_blank(first - 1) and last < len(rows)
    return Span(Position(first, 1), Position(last + 1, 1))
