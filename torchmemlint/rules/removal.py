"""Edits that take a statement out of a program."""

from __future__ import annotations

import ast

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
            return (Edit(Span(Position(found.lineno, 1), Position(call.end.row + 1, 1)), ""),)
        alternative = source.rows[around.lineno - 1].lstrip().startswith("elif")
        if not isinstance(around, ast.If) or around.orelse or alternative:
            break
        found = around
    return (Edit(call, "pass"),)
