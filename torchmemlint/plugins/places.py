"""Places as the syntax has them, and as the analysis has them."""

from __future__ import annotations

from torchmemlint.findings import Position, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir import ops


def operations_at(facts: FileFacts, span: Span) -> ops.Span:
    """The span by which the analysis knows a place: lines from 1, columns in bytes from 0."""

    def column(at: Position) -> int:
        rows = facts.source.rows
        before = rows[at.row - 1][: at.column - 1] if at.row <= len(rows) else ""
        return len(before.encode("utf-8", "surrogatepass"))

    return (span.start.row, column(span.start), span.end.row, column(span.end))
