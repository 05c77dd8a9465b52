"""Names of torch that a release deprecated or removed, where the file uses them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.findings import Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import versions
from torchmemlint.knowledge.versions import Retirement
from torchmemlint.syntax.outline import dotted, parts


@immutable()
class RetiredName:
    """A use of a retired name."""

    span: Span  # the whole dotted name
    text: str  # as the file spells it
    retirement: Retirement


def uses(facts: FileFacts, names: tuple[str, ...]) -> Iterator[RetiredName]:
    """Uses of those of the qualified names that are retired for the file's target; in the order of the file.

    A top-level statement that also names what took the name's place chooses between the two, and is passed over.
    """
    source = facts.source
    retired = {name: found for name in names if (found := versions.retirement(name, facts.target_torch)) is not None}
    words = {name.rpartition(".")[2] for name in retired}
    for piece in source.pieces if any(word in source.text for word in words) else ():
        if piece.outline is None or not any(word in piece.text for word in words):
            continue
        for statement in (piece.outline, *piece.beside):
            for node, text in _references(statement):
                retirement = retired.get(facts.program.qualify(text))
                other = (retirement.instead or "").rpartition(".")[2] if retirement is not None else ""
                if retirement is not None and not (other and other in piece.text):
                    place = (node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)
                    yield RetiredName(source.span_of(place), text, retirement)


def _references(statement: ast.stmt) -> Iterator[tuple[ast.expr, str]]:
    """The dotted names that are read, longest first and each once."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Attribute | ast.Name) and (text := dotted(node)):
            if isinstance(node.ctx, ast.Load):
                yield node, text
            continue
        pending += reversed(parts(node))
