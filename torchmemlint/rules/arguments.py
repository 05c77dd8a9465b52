"""Calls as rules see them: the known values of their arguments, and the edits that add, change or remove one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.syntax import cst
from torchmemlint.syntax.source_module import Piece
from torchmemlint.syntax.text import text_of


@dataclass(frozen=True, slots=True, eq=False)
class WrittenCall:
    """A call as it is written in a file."""

    facts: FileFacts
    piece: Piece
    node: cst.Call

    @property
    def span(self) -> Span:
        """Where it stands."""
        return self.piece.span(self.node)

    @property
    def callee(self) -> str:
        """What is called, as it is written."""
        return text_of(self.node.func)

    def argument(self, name: str, position: int | None = None) -> cst.BaseExpression | None:
        """The expression that is given for an argument, where it stands in the call itself."""
        for index, argument in enumerate(self.node.args):
            if argument.star:
                position = None if argument.star == "*" else position
            elif argument.keyword.value == name if argument.keyword is not None else index == position:
                return argument.value
        return None

    def given_at(self, position: int) -> cst.BaseExpression | None:
        """The expression that is given in a position; None where a `*` may shift it."""
        return None if any(argument.star for argument in self.node.args) else self.node.args[position].value

    def adding(self, text: str) -> tuple[Edit, ...]:
        """Edits that add `text` ("pin_memory=True") as the last argument, in the call's own style."""
        if not self.node.args:
            end = self.span.end
            between = Position(end.row, end.column - 1)
            return (Edit(Span(between, between), text),)
        last = self.piece.span(self.node.args[-1])  # not that of its value, which leaves the brackets of a tuple out
        before = self.facts.source.rows[last.start.row - 1][: last.start.column - 1]
        joint = f",\n{before}" if not before.strip() else ", "
        return (Edit(Span(last.end, last.end), joint + text),)

    def replacing(self, node: cst.CSTNode, text: str) -> tuple[Edit, ...]:
        """Edits that put `text` in the place of a part of it."""
        return (Edit(self.piece.span(node), text),)

    def without(self, *names: str) -> tuple[Edit, ...]:
        """Edits that take keyword arguments of these names out, with their commas; () where it has none."""
        arguments = self.node.args
        gone = [one.keyword is not None and one.keyword.value in names for one in arguments]
        edits: list[Edit] = []
        for first, last in _runs(gone):
            begin, end = self.piece.span(arguments[first]).start, self.piece.span(arguments[last]).end
            if first > 0:
                begin = self.piece.span(arguments[first - 1]).end
            elif last + 1 < len(gone):
                end = self.piece.span(arguments[last + 1]).start
            edits.append(Edit(Span(begin, end), ""))
        return tuple(edits)


def call_at(facts: FileFacts, span: Span) -> WrittenCall | None:
    """The call that stands there; None where none does."""
    piece = facts.source.piece_at(span)
    if piece is None:
        return None
    return next((WrittenCall(facts, piece, node) for node in piece.at(span) if isinstance(node, cst.Call)), None)


def shown(node: cst.BaseExpression | None) -> str:
    """The argument's source text, "" where there is none."""
    return text_of(node) if node is not None else ""


def _runs(marks: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """The first and last place of each run of marks."""
    for value, places in itertools.groupby(range(len(marks)), key=marks.__getitem__):
        run = list(places)
        if value:
            yield run[0], run[-1]
