"""A source file as top-level pieces, each with a libcst tree from when a rule first looks at it.

Whole-file libcst parsing is about ten times as dear as `ast.parse`, so the standard parser finds where statements
begin and end, and libcst reads just those that matter. A top-level statement starts in column 0 and is complete in
itself, so a piece parses alone exactly as it does in its file.
"""

from __future__ import annotations

import ast
import io
import re
import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from torchmemlint.findings import Position, Span
from torchmemlint.immutable import immutable
from torchmemlint.source.decoding import LimitReached, UnreadableFile
from torchmemlint.source.directives import comments
from torchmemlint.syntax import cst, patterns, statements
from torchmemlint.syntax.text import characters, code_of, parse_with_libcst
from torchmemlint.syntax.trees import PARSING, Tree, Trees

_MAX_BRACKETS = 200  # as many as Python itself takes
_BYTES_OF_TREE = 500  # of memory for each of a text, more than the standard parser takes
_DEFINITION = re.compile(r"(?:async\s+def|def|class)\s")


@dataclass(eq=False, slots=True, repr=False)
class Piece:
    """One top-level statement: its place in the file and, once asked for, its libcst tree."""

    lines: list[str]  # of its text, each with a line feed
    first_row: int  # 1-based row of the piece's first line (its first decorator's, if any)
    kind: str  # "def", "class" or "code"
    name: str  # of a function or class, else ""
    outline: ast.stmt | None  # the standard parser's node; None of a part of a piece
    path: Path
    trees: Trees = PARSING
    beside: list[ast.stmt] = field(default_factory=list)  # statements that share its last row: `a = 1; b = 2`
    _tree: Tree | None = field(default=None, repr=False)
    _text: str | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"Piece({self.kind} {self.name!r} at {self.first_row})"

    @property
    def text(self) -> str:
        """Its text."""
        if self._text is None:
            self._text = "".join(self.lines)
        return self._text

    @staticmethod
    def row_of(statement: ast.stmt) -> int:
        """The row in the file in which a statement of the outline, or its first decorator, begins."""
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        return min([statement.lineno, *(decorator.lineno for decorator in decorators)])

    def refuse_if_deeper(self, depth: int) -> None:
        """Raise UnreadableFile where libcst and the analysis, which are recursive, would go too deep."""
        if depth > self.trees.nesting:
            more = f"it is nested {depth} levels deep, which is more than {self.trees.nesting}"
            raise LimitReached("nesting", more, Position(self.first_row, 1))

    @property
    def module(self) -> cst.Module:
        """The piece as a libcst module of one statement (or a few, when several share a line)."""
        return self.tree.module

    @property
    def tree(self) -> Tree:
        """The same, with where its nodes stand."""
        if self._tree is None:
            self._tree = self.trees.concrete(self.text, self.path)
        return self._tree

    def written(self, node: cst.CSTNode) -> str:
        """The text of a node as it stands there, in its own brackets."""
        return code_of(node)

    def release(self) -> None:
        """Let go of the trees: the piece is not asked any more."""
        self._tree = self._text = self.outline = None
        self.lines, self.beside = [], []

    def span(self, node: cst.CSTNode) -> Span:
        """Where `node` stands in the file; computed for the whole piece on first use."""
        (row, column), (last_row, last_column), _ = self.tree.ranges[id(node)]
        shift = self.first_row - 1
        return Span(Position(row + shift, column + 1), Position(last_row + shift, last_column + 1))

    def at(self, span: Span) -> list[cst.CSTNode]:
        """The nodes that stand there, outer ones first."""
        above = self.first_row - 1
        start, end = ((place.row - above, place.column - 1) for place in (span.start, span.end))
        return self.tree.at(start, end)


@immutable(eq=False, repr=False)
class Site:
    """A syntax node and the piece it belongs to: a place that can be turned into a span when needed."""

    piece: Piece
    node: cst.CSTNode

    def __repr__(self) -> str:
        return f"Site({type(self.node).__name__} at {self.span.start.row}:{self.span.start.column})"

    @property
    def span(self) -> Span:
        """The node's span in its file."""
        return self.piece.span(self.node)


class SourceModule:
    """The text of one file with its pieces and imports.

    Raises UnreadableFile where the standard parser cannot read it.
    """

    def __init__(self, text: str, path: Path, *, trees: Trees = PARSING) -> None:
        self.text = text
        self.path = path
        self.statements: list[ast.stmt] = []  # of the top level
        self._trees = trees
        self._narrow: dict[ast.stmt | tuple[int, int | None], Piece] = {}
        try:
            self.statements = trees.standard(text, path).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise _unreadable(error, text) from error
        else:
            self.pieces = _split(self.statements, text, path, trees)

    def statement_span(self, span: Span) -> Span:
        """The innermost statement around a stretch; of a compound one only its header. The stretch where none is."""
        return statements.span_around(self.statements, span, self.rows)

    def piece_at(self, span: Span) -> Piece | None:
        """The innermost statement around a stretch, or its header, as a piece of its own: libcst reads no more of it.

        The top-level statement where that cannot be read by itself.
        """
        found = statements.innermost(self.statements, span, self.rows)
        if found is not None:
            # Those that share a row, `a = 1; b = 2`, are one piece.
            key = found if statements.is_compound(found) else (found.lineno, found.end_lineno)
            if key not in self._narrow:
                lines, first = statements.alone(found, self.rows)
                self._narrow[key] = Piece(lines, first, "code", "", None, self.path, trees=self._trees)
            if self._narrow[key].module.body:
                return self._narrow[key]
        return next((piece for piece in reversed(self.pieces) if piece.first_row <= span.start.row), None)

    def span_of(self, place: tuple[int, int, int, int]) -> Span:
        """A stretch that is told as the standard parser tells it: in lines and bytes."""
        return span_in(self.rows, place)

    @cached_property
    def rows(self) -> list[str]:
        """The lines of the file, without their line ends, as rows count them."""
        return self.rows_of(self.text)

    def comments_in(self, span: Span) -> list[tuple[Position, str]]:
        """The comments that begin in a stretch, and where."""
        first, last = (bisect_left(self._comments, (place,)) for place in (span.start, span.end))
        return self._comments[first:last]

    @cached_property
    def _comments(self) -> list[tuple[Position, str]]:
        return [(Position(one.start[0], one.start[1] + 1), one.string) for one in comments("\n".join(self.rows))]

    @staticmethod
    def rows_of(text: str) -> list[str]:
        """The lines of a text, likewise."""
        return _with_line_feeds(text).split("\n")


def span_in(rows: Sequence[str], place: tuple[int, int, int, int]) -> Span:
    """A stretch of some rows that is told as the standard parser tells it: in lines and bytes."""
    first, start, last, end = place
    begin = Position(first, characters(rows[first - 1], start) + 1)
    return Span(begin, Position(last, characters(rows[last - 1], end) + 1))


def _split(body: list[ast.stmt], text: str, path: Path, trees: Trees) -> list[Piece]:
    lines = _lines(text)
    pieces: list[Piece] = []
    for statement in body:
        first = Piece.row_of(statement)
        last = statement.end_lineno or statement.lineno
        if pieces and first < pieces[-1].first_row + len(pieces[-1].lines):
            pieces[-1].lines += lines[first:last]  # `a = 1; b = 2`: the line is one piece
            pieces[-1].beside.append(statement)
            continue
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                kind, name = "def", statement.name
            case ast.ClassDef():
                kind, name = "class", statement.name
            case _:
                kind, name = "code", ""
        pieces.append(Piece(lines[first - 1 : last], first, kind, name, statement, path, trees=trees))
    return pieces


def _lines(text: str) -> list[str]:
    """Lines as the parser counts them: LF, CRLF and CR end a line, a form feed does not. Each ends with LF here."""
    return io.StringIO(_with_line_feeds(text) + "\n", newline="\n").readlines()


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_newer(reason: SyntaxError, text: str) -> bool:
    """Can libcst, which knows the syntax of newer releases of Python, read what this one cannot?"""
    if patterns.brackets(text) > _MAX_BRACKETS or patterns.too_deep(text):
        return False  # libcst's parser would end the process
    try:
        # A whole file takes libcst long, and most texts that Python cannot read are half written, or Python 2.
        parse_with_libcst(_around(text, reason.lineno or 1))
        parse_with_libcst(text)
    except Exception:  # noqa: BLE001 - of whatever kind
        return False
    return True


def _around(text: str, row: int) -> str:
    """The definition at the top level that a row lies in, or what stands there between two of them."""
    lines = _lines(text)
    row = min(row, len(lines))
    first = next((n for n in range(row, 0, -1) if _DEFINITION.match(lines[n - 1])), 1)
    while first > 1 and lines[first - 2].startswith("@"):
        first -= 1
    after = (n for n in range(row + 1, len(lines) + 1) if _DEFINITION.match(lines[n - 1]) or lines[n - 1][:1] == "@")
    return "".join(lines[first - 1 : next(after, len(lines) + 1) - 1])


def _has_room(size: int) -> bool:
    """Can so many bytes be had? If so, a MemoryError of Python's parser says that its stack has ended, not memory."""
    try:
        bytearray(size)
    except MemoryError:
        return False
    return True


def _unreadable(reason: Exception, text: str) -> UnreadableFile:
    if isinstance(reason, SyntaxError):
        place = Position(max(reason.lineno or 1, 1), max(reason.offset or 1, 1))
        if _is_newer(reason, text):
            own = ".".join(map(str, sys.version_info[:2]))
            more = f"newer than Python {own}, with which torchmemlint was started: use the one that the code is for"
            return UnreadableFile(f"Syntax {more} ({reason.msg})", place)
        return UnreadableFile(f"Syntax error: {reason.msg}", place)
    if isinstance(reason, RecursionError | MemoryError):
        if isinstance(reason, MemoryError) and not _has_room(_BYTES_OF_TREE * len(text)):
            raise reason
        return LimitReached("nesting", "it is nested too deeply to be parsed")
    return UnreadableFile(f"Cannot be parsed: {reason}")
