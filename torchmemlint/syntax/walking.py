"""What stands inside a node.

`CSTNode.children` visits a node as a transformer would, which takes twenty times as long as to look at its fields.
Blanks, comments, brackets and punctuation are nobody's children here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import libcst as cst

_PUNCTUATION = frozenset(
    "asynchronous colon comma dot equal first_colon footer header indent lbrace lbracket leading_lines "
    "leading_whitespace lines_after_decorators lines_after_module_docstring lpar posonly_ind rbrace rbracket relative "
    "rpar second_colon semicolon star trailing_whitespace".split()
)
# Where the fields of a class are declared in another order than they stand in the text.
_IN_ORDER = {
    cst.Arg: ("keyword", "value"),
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.ExceptStarHandler: ("type", "name", "body"),
    cst.FunctionDef: ("decorators", "name", "type_parameters", "params", "returns", "body"),
    cst.IfExp: ("body", "test", "orelse"),
    cst.MatchCase: ("pattern", "guard", "body"),
    cst.Parameters: ("posonly_params", "params", "star_arg", "kwonly_params", "star_kwarg"),
}
_fields: dict[type, tuple[str, ...] | None] = {tuple: None, list: None}  # None: of what is no node


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes directly below a node, as they stand in the text."""
    found: list[cst.CSTNode] = []
    for name in _fields_of(type(node)) or ():
        value = getattr(node, name)
        kind = type(value)
        if kind is tuple or kind is list:
            found += value
        elif (_fields[kind] if kind in _fields else _fields_of(kind)) is not None:
            found.append(value)
    return found


def _fields_of(kind: type) -> tuple[str, ...] | None:
    if kind not in _fields:
        _fields[kind] = _read_fields(kind) if issubclass(kind, cst.CSTNode) else None
    return _fields[kind]


def _read_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    if kind in _IN_ORDER:
        return _IN_ORDER[kind]
    names = (field.name for field in fields(kind))
    return tuple(name for name in names if name not in _PUNCTUATION and not name.startswith("whitespace"))


def contains(node: cst.CSTNode, wanted: cst.CSTNode) -> bool:
    """Is it the node itself, or one below it?"""
    return any(below is wanted for below in inside(node))


def inside(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it. (`libcst.matchers` would do, and takes as long to import as the rest of libcst.)"""
    pending = [node]
    while pending:
        below = pending.pop()
        yield below
        pending += reversed(children(below))


def side_by_side(one: cst.CSTNode, other: cst.CSTNode) -> list[tuple[cst.CSTNode, cst.CSTNode]] | None:
    """The nodes of two trees that have the same shape, each with the other's; None where the shapes differ."""
    found = [(one, other)]
    for left, right in found:  # which grows on the way
        below, beside = children(left), children(right)
        if type(left) is not type(right) or len(below) != len(beside):
            return None
        found += zip(below, beside, strict=True)
    return found


def parents(root: cst.CSTNode) -> dict[int, cst.CSTNode]:
    """What each node below the root stands in, by the identity of the node."""
    return {id(child): node for node in inside(root) for child in children(node)}


def around(node: cst.CSTNode, above: dict[int, cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """What a node stands in, from the inside out."""
    parent = above.get(id(node))
    while parent is not None:
        yield parent
        parent = above.get(id(parent))


def names_in(node: cst.CSTNode) -> set[str]:
    """The names that stand in a node: what it reads or binds, and the parts of its attributes."""
    return {one.value for one in inside(node) if isinstance(one, cst.Name)}
