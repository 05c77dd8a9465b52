"""Edits that take a statement out of a program."""

from __future__ import annotations

import libcst as cst

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.walking import children


def removing(call: Site) -> tuple[Edit, ...]:
    """Edits that remove a call that is a statement with its row, and every `if` that holds nothing else.

    Where nothing would be left of another block, `pass` takes its place. () where the statement shares its row.
    """
    piece = call.piece
    *path, _ = _path(piece.module, call.node)
    if (
        len(path) < 3
        or not isinstance(path[-1], cst.Expr)
        or not isinstance(path[-2], cst.SimpleStatementLine)
        or len(path[-2].body) != 1
    ):
        return ()
    span = piece.span(path[-1])
    for depth in range(len(path) - 3, -1, -1):
        block = path[depth]
        if not isinstance(block, cst.IndentedBlock | cst.Module):
            continue
        if isinstance(block, cst.Module) or len(block.body) > 1:
            first = piece.span(path[depth + 1]).start.row
            return (Edit(Span(Position(first, 1), Position(span.end.row + 1, 1)), ""),)
        owner = path[depth - 1]
        if not isinstance(owner, cst.If) or owner.orelse is not None or isinstance(path[depth - 2], cst.If):
            break
    return (Edit(span, "pass"),)


def _path(root: cst.CSTNode, wanted: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes from the root to the wanted one."""
    if root is wanted:
        return [root]
    for child in children(root):
        found = _path(child, wanted)
        if found:
            return [root, *found]
    return []
