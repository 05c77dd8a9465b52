"""Edits that give a statement lines of its own, where it shares one: with others behind a `;`, or with a header."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.immutable import immutable
from torchmemlint.syntax import statements


@immutable()
class Separate:
    """A statement on lines of its own, once some edits are made."""

    statement: ast.stmt
    indent: str
    before: Edit  # what comes in front of it, to be made with what is put there besides
    others: tuple[Edit, ...]

    def led_by(self, text: str) -> tuple[Edit, ...]:
        """The edits, with a text in front of the statement."""
        return (Edit(self.before.span, self.before.content + text), *self.others)


def separated(facts: FileFacts, span: Span) -> Separate | None:
    """How to give a statement lines of its own; None where no simple one stands there, or something is in between.

    What stands behind the last statement of a line, as a comment, stays there.
    """
    source = facts.source
    *outer, found = (None, *statements.around(source.statements, span, source.rows))
    if found is None or any(True for _ in statements.below(found)) or source.span_of(place_of(found)) != span:
        return None
    head = outer[-1]
    blocks = [source.statements] if head is None else statements.blocks(head)
    block = next(block for block in blocks if found in block)
    places = {one: source.span_of(place_of(one)) for one in block if one.lineno <= span.end.row}
    own = [one for one in places if places[one].end.row >= span.start.row]
    first = places[own[0]].start
    lead = source.rows[first.row - 1][: first.column - 1]
    is_on_header = head is not None and bool(lead.strip())
    row = source.rows[(_header(head, block) if is_on_header and head is not None else first.row) - 1]
    indent = row[: len(row) - len(row.lstrip())]
    gaps: dict[ast.stmt, Span] = {}
    if is_on_header:
        indent += step_of(facts, span)
        gaps[own[0]] = Span(Position(first.row, len(lead.rstrip()) + 1), first)
    elif lead.strip():
        return None
    for previous, one in itertools.pairwise(own):
        gaps[one] = Span(places[previous].end, places[one].start)
    at = own.index(found)
    moved = [one for n, one in enumerate(own) if one in gaps and (is_on_header or n in (at, at + 1))]
    edits = {one: Edit(gaps[one], f"\n{indent}") for one in moved}
    if any(gaps[one].text(source.rows).strip(" \t;") for one in moved):
        return None
    others = [edit for one, edit in edits.items() if one is not found]
    rest = source.rows[span.end.row - 1][span.end.column - 1 :]
    if found is own[-1] and rest.lstrip().startswith(";"):
        semicolon = span.end.column + rest.index(";") + 1
        others.append(Edit(Span(span.end, Position(span.end.row, semicolon)), ""))
    return Separate(found, indent, edits.get(found, Edit(Span(span.start, span.start), "")), tuple(others))


def _header(head: ast.stmt, block: list[ast.stmt]) -> int:
    """The row in which the header of a block begins."""
    cases = head.cases if isinstance(head, ast.Match) else ()
    return next((case.pattern.lineno for case in cases if case.body is block), head.lineno)


def step_of(facts: FileFacts, span: Span) -> str:
    """One step of indentation, as the blocks around a place are indented, or else the first one of the file."""
    source = facts.source
    around = statements.around(source.statements, span, source.rows)
    for head, inner in reversed(list(itertools.pairwise(around))):
        if (step := _step(source.rows, head, inner)) is not None:
            return step
    pairs = ((head, inner) for head in source.statements for inner in itertools.islice(statements.below(head), 1))
    return next((step for head, inner in pairs if (step := _step(source.rows, head, inner)) is not None), "    ")


def _step(rows: Sequence[str], head: ast.stmt, inner: ast.stmt) -> str | None:
    cases = (case.pattern.lineno for case in head.cases) if isinstance(head, ast.Match) else ()
    header = max((line for line in cases if line <= inner.lineno), default=head.lineno)
    outer, own = (row[: len(row) - len(row.lstrip())] for row in (rows[header - 1], rows[inner.lineno - 1]))
    return own.removeprefix(outer) if own.startswith(outer) and own != outer else None


def place_of(node: ast.stmt | ast.expr) -> tuple[int, int, int, int]:
    """Where a node stands, as the standard parser tells it."""
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
