"""A tree brought to a new text: what an edit has left alone keeps its nodes.

What is known of a place in the code is known by its node. So after an edit the changed statements alone are taken
from the new text's tree, and put into the old one. Which ones they are, the texts tell: libcst's nodes know neither
their place nor, without much ado, their text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

import libcst as cst

from torchmemlint.immutable import immutable
from torchmemlint.syntax.source_module import Piece
from torchmemlint.syntax.trees import Tree

_COMMENT = re.compile(r"\s*#[^\"'\n]*$")  # at the end of a row, and for certain not in a string


def graft(old: Piece, new: Piece) -> Tree | None:
    """The old function's tree, made to read as the new one does by changing as little of it as may be.

    None where the head of the function changed, or more than is understood; the old tree is of no use then.
    """
    one, other = old.definition(), new.definition()
    if one is None or other is None or old.outline is None or new.outline is None:
        return None
    before = _Compound(old, one, old.outline, len(old.lines))
    after = _Compound(new, other, new.outline, len(new.lines))
    old.trees.disown(old.tree)
    if not _absorb(before, after):
        return None
    module = old.tree.module
    return Tree(new.text, new.path, module) if module.deep_equals(new.module) else None


@immutable()
class _Statement:
    """A statement (or several that share a row) of a suite."""

    node: Any
    syntax: ast.stmt
    first: int  # its rows, counted from 0 within the piece
    end: int  # the first row after it
    until: int  # the first row of what comes after it


@immutable()
class _Suite:
    """The statements that hang on a header."""

    piece: Piece
    block: cst.IndentedBlock
    statements: list[_Statement]


class _Compound:
    """A compound statement, or a clause of one, with its rows up to the first one of what comes after it."""

    def __init__(self, piece: Piece, node: Any, syntax: Any, until: int) -> None:
        self.node = node
        self.piece = piece
        self.clauses = list(_clauses(node, syntax))
        self.suites: list[_Suite] | None = []
        first = piece.row_of(syntax) - piece.first_row
        rows = dict.fromkeys(range(first, until))  # of the headers, in the end
        starts = [piece.row_of(body[0]) - piece.first_row for _, body in self.clauses if body]
        for (clause, body), after in zip(self.clauses, [*starts[1:], until], strict=False):
            statements = _statements(piece, clause.body, body, after)
            if statements is None:
                self.suites = None
                return
            self.suites.append(_Suite(piece, clause.body, statements))
            for row in range(statements[0].first, statements[-1].end):
                rows.pop(row, None)
        # Comments and blanks of their own belong to the nearest statement; they are looked at with these.
        headers = (_COMMENT.sub("", piece.lines[row]) for row in rows)
        self.headers = [text for text in headers if text.strip()]


def _clauses(node: Any, syntax: Any) -> Iterator[tuple[Any, Sequence[ast.stmt]]]:
    """The clauses of a compound statement, itself first, each with the statements in it."""
    yield node, syntax.body
    for handler, except_ in zip(getattr(node, "handlers", ()), getattr(syntax, "handlers", ()), strict=False):
        yield handler, except_.body
    orelse = getattr(node, "orelse", None)
    if isinstance(orelse, cst.If):
        yield from _clauses(orelse, syntax.orelse[0])
    elif orelse is not None:
        yield orelse, syntax.orelse
    if getattr(node, "finalbody", None) is not None:
        yield node.finalbody, syntax.finalbody


def _statements(piece: Piece, block: Any, body: Sequence[ast.stmt], until: int) -> list[_Statement] | None:
    """The statements of a suite with their rows; None for one on its header's row."""
    if not isinstance(block, cst.IndentedBlock):
        return None
    rows: list[tuple[ast.stmt, int, int]] = []
    for syntax in body:
        first = piece.row_of(syntax) - piece.first_row
        end = first + piece.part(syntax).count("\n")
        if rows and first < rows[-1][2]:
            rows[-1] = (*rows[-1][:2], max(end, rows[-1][2]))  # `a = 1; b = 2`
        else:
            rows.append((syntax, first, end))
    if not rows or len(rows) != len(block.body):
        return None
    after = [first for _, first, _ in rows[1:]] + [until]
    return [_Statement(node, *place, next_) for node, place, next_ in zip(block.body, rows, after, strict=True)]


def _absorb(old: _Compound, new: _Compound) -> bool:
    """Give a compound statement the suites of another one; False where more than these differ."""
    if type(old.node) is not type(new.node) or len(old.clauses) != len(new.clauses):
        return False
    if old.suites is None or new.suites is None or old.headers != new.headers:
        return False
    for one, changed in zip(old.suites, new.suites, strict=True):
        # Nodes are frozen for whoever shares them, and this tree is the caller's own.
        object.__setattr__(one.block, "body", _merged(one, changed))
    return True


def _merged(old: _Suite, new: _Suite) -> list[Any]:
    """The new statements, with the old ones in place of those that are the same."""
    before, after = ([_text(suite.piece, one) for one in suite.statements] for suite in (old, new))
    found = [one.node for one in new.statements]
    for kind, start, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            found[first:last] = [one.node for one in old.statements[start:end]]
        elif end - start == last - first == 1 and _take_over(old, old.statements[start], new, new.statements[first]):
            found[first] = old.statements[start].node
    return found


def _take_over(old: _Suite, one: _Statement, new: _Suite, other: _Statement) -> bool:
    """Make a statement read as another one without making it another; False where that is not possible."""
    if isinstance(one.node, cst.SimpleStatementLine) and isinstance(other.node, cst.SimpleStatementLine):
        return bool(one.node.deep_equals(other.node))  # a comment, or a blank, may be all that changed
    if not _is_compound(one.node) or not _is_compound(other.node):
        return False
    return _absorb(
        _Compound(old.piece, one.node, one.syntax, one.until),
        _Compound(new.piece, other.node, other.syntax, other.until),
    )


def _is_compound(node: Any) -> bool:
    return isinstance(node, cst.BaseCompoundStatement) and not isinstance(node, cst.Match | cst.TryStar)


def _text(piece: Piece, statement: _Statement) -> str:
    """The rows of a statement; of a compound one, also those after it, which may be comments in its last suite."""
    compound = isinstance(statement.node, cst.BaseCompoundStatement)
    return "".join(piece.lines[statement.first : statement.until if compound else statement.end])
