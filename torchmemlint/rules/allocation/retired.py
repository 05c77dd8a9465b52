"""Names of torch that a release deprecated or removed, where the file uses them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.program import Program
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import versions
from torchmemlint.knowledge.versions import Retirement
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Piece, Site


@immutable()
class RetiredName:
    """A use of a retired name."""

    site: Site  # the whole dotted name
    text: str  # as the file spells it
    retirement: Retirement


def uses(program: Program, names: tuple[str, ...], target: str | None) -> Iterator[RetiredName]:
    """Uses of those of the qualified names that are retired for the target; in the order of the file.

    A piece that also names what took the name's place chooses between the two, and is passed over.
    """
    retired = {name: found for name in names if (found := versions.retirement(name, target)) is not None}
    words = {name.rpartition(".")[2] for name in retired}
    if not any(word in program.source.text for word in words):
        return
    for piece in program.source.pieces:
        if any(word in piece.text for word in words):
            for node, text in _references(piece):
                retirement = retired.get(program.qualify(text))
                if retirement is not None and not _chooses(piece, retirement):
                    yield RetiredName(Site(piece, node), text, retirement)


def _chooses(piece: Piece, retirement: Retirement) -> bool:
    other = (retirement.instead or "").rpartition(".")[2]
    return bool(other) and other in piece.text


def _references(piece: Piece) -> Iterator[tuple[cst.BaseExpression, str]]:
    """The dotted names that are read, longest first and each once; imports and assignments' targets are none."""
    stack: list[cst.CSTNode] = [piece.module]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Import | cst.ImportFrom):
            continue
        if isinstance(node, cst.Attribute | cst.Name):
            text = dotted_text(node)
            if text:
                yield node, text
                continue
        if isinstance(node, cst.Assign | cst.AnnAssign | cst.AugAssign) and node.value is not None:
            stack.append(node.value)
            continue
        if isinstance(node, cst.Arg):  # not its keyword
            stack.append(node.value)
            continue
        if isinstance(node, cst.FunctionDef | cst.ClassDef):  # not its name
            stack += [child for child in reversed(node.children) if child is not node.name]
            continue
        stack += reversed(node.children)
