"""Calls as rules see them: the known values of their arguments, and the edits that add, change or remove one."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.immutable import immutable
from torchmemlint.rules.separating import place_of
from torchmemlint.syntax import cst, statements
from torchmemlint.syntax.source_module import Piece
from torchmemlint.syntax.text import text_of

_SPACED = re.compile(r"\w+ = ")
_COMMENT_BEHIND = re.compile(r"[ \t]*(?:(,)[ \t]*)?#")
_REST = re.compile(r"[ \t]*(?:(,)[ \t]*)?(?:#.*)?$")  # of a row, behind an argument


@immutable(eq=False)
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
        """Edits that add `text` ("pin_memory=True") as the last argument, in the call's own style.

        It goes to the dictionary that a name holds for such calls alone, if there is one.
        """
        collected = self._collected(text)
        if collected:
            return collected
        if not self.node.args:
            end = self.span.end
            between = Position(end.row, end.column - 1)
            return (Edit(Span(between, between), text),)
        last = self.piece.span(self.node.args[-1])  # not that of its value, which leaves the brackets of a tuple out
        rows = self.facts.source.rows
        named = [one for one in self.node.args if one.keyword is not None]
        if named and all(_SPACED.match(self.piece.span(one).text(rows)) for one in named):
            text = text.replace("=", " = ", 1)
        before = rows[last.start.row - 1][: last.start.column - 1]
        row, column = last.end.row, last.end.column
        behind = _COMMENT_BEHIND.match(rows[row - 1], column - 1)
        if behind is None:
            joint = f",\n{before}" if not before.strip() and self._has_rows_of_one() else ", "
            return (Edit(Span(last.end, last.end), joint + text),)
        # The comment speaks of what stands before it, and stays there.
        indent = before[: len(before) - len(before.lstrip())]
        if last.start.row == self.span.start.row:
            indent += "    "
        end = Position(row, len(rows[row - 1]) + 1)
        if behind[1]:
            return (Edit(Span(end, end), f"\n{indent}{text},"),)
        return (Edit(Span(last.end, last.end), ","), Edit(Span(end, end), f"\n{indent}{text}"))

    def _collected(self, text: str) -> tuple[Edit, ...]:
        """Edits that add `text` to the dictionary of named arguments that calls of this kind share; () without one."""
        spread = [one.value for one in self.node.args if one.star == "**"]
        source = self.facts.source
        block = statements.block_of(source.statements, self.span, source.rows) if len(spread) == 1 else ()
        wanted = text_of(spread[0]) if spread else ""
        nodes = [node for one in block for node in ast.walk(one)]
        named = sum(isinstance(node, ast.Name) and node.id == wanted for node in nodes)
        takers = [node for node in nodes if isinstance(node, ast.Call) and wanted in _spread(node)]
        given = {one.arg for taker in takers for one in taker.keywords}
        if named != len(takers) + 1 or {ast.unparse(one.func) for one in takers} != {self.callee}:
            return ()
        for one in block if text.partition("=")[0] not in given else ():
            match one:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == wanted:
                    return self._extended(value, text)
        return ()

    def _extended(self, collected: ast.expr, text: str) -> tuple[Edit, ...]:
        """Edits that add an argument to `dict(a=1)` or `{"a": 1}`; () for anything else."""
        span_of = self.facts.source.span_of
        match collected:
            case ast.Call(func=ast.Name("dict"), args=[], keywords=[_, *_]):
                made = call_at(self.facts, span_of(place_of(collected)))
                return made.adding(text) if made is not None else ()
            case ast.Dict(keys=[*_, ast.Constant(value=str()) as key], values=[*_, value]) if (
                None not in collected.keys
            ):
                rows, at, end = self.facts.source.rows, span_of(place_of(key)).start, span_of(place_of(value)).end
                if "#" in rows[end.row - 1][end.column - 1 :]:
                    return ()
                quote, before = rows[at.row - 1][at.column - 1], rows[at.row - 1][: at.column - 1]
                name, _, argument = text.partition("=")
                joint = ", " if before.strip() else f",\n{before}"
                return (Edit(Span(end, end), f"{joint}{quote}{name}{quote}: {argument}"),)
        return ()

    def _has_rows_of_one(self) -> bool:
        """Does each argument begin a row of its own?"""
        begun = [self.piece.span(one).start.row for one in self.node.args]
        return len(begun) == len(set(begun))

    def replacing(self, node: cst.CSTNode, text: str) -> tuple[Edit, ...]:
        """Edits that put `text` in the place of a part of it."""
        return (Edit(self.piece.span(node), text),)

    def without(self, *names: str) -> tuple[Edit, ...]:
        """Edits that take keyword arguments of these names out, with their commas; () where it has none."""
        arguments = self.node.args
        gone = [one.keyword is not None and one.keyword.value in names for one in arguments]
        if gone and all(gone):
            start, end = self.piece.span(self.node.func).end, self.span.end
            between = Span(start, Position(end.row, end.column - 1)).text(self.facts.source.rows)
            head, _, inner = between.partition("(")
            opened = Position(start.row, start.column + len(head) + 1)
            if inner and not head.strip():
                return (Edit(Span(opened, Position(end.row, end.column - 1)), ""),)
        return tuple(edit for first, last in _runs(gone) for edit in self._taken_out(first, last))

    def _taken_out(self, first: int, last: int) -> Iterator[Edit]:
        """Yield edits that take out the arguments from one to another: with their lines, if these are their own."""
        arguments, rows = self.node.args, self.facts.source.rows
        begin, end = self.piece.span(arguments[first]).start, self.piece.span(arguments[last]).end
        before = self.piece.span(arguments[first - 1]).end if first > 0 else None
        behind = _REST.match(rows[end.row - 1], end.column - 1)
        is_last = last + 1 == len(arguments)
        if behind is not None and not rows[begin.row - 1][: begin.column - 1].strip():
            if is_last and before is not None and not behind[1]:
                comma = rows[before.row - 1].find(",", before.column - 1)
                yield Edit(Span(Position(before.row, comma + 1), Position(before.row, comma + 2)), "")
            yield Edit(Span(Position(begin.row, 1), Position(end.row + 1, 1)), "")
        elif before is not None and begin.row != before.row and "#" in rows[before.row - 1][before.column - 1 :]:
            comma = rows[before.row - 1].find(",", before.column - 1)  # a comment on what stays
            yield Edit(Span(Position(before.row, comma + 1), Position(before.row, comma + 2)), "")
            yield Edit(Span(begin, end), "")
        elif before is not None:
            yield Edit(Span(before, end), "")
        else:
            yield Edit(Span(begin, end if is_last else self.piece.span(arguments[last + 1]).start), "")


def _spread(call: ast.Call) -> set[str]:
    """The names of dictionaries that a call is given the arguments of."""
    return {one.value.id for one in call.keywords if one.arg is None and isinstance(one.value, ast.Name)}


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
