"""What stands inside a node.

`CSTNode.children` visits a node as a transformer would, which takes twenty times as long as to look at its fields.
Blanks, comments, brackets and punctuation are nobody's children here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from torchmemlint.syntax import cst

_PUNCTUATION = frozenset(
    "asynchronous colon comma dot equal first_colon footer header indent lbrace lbracket leading_lines "
    "leading_whitespace lines_after_decorators lines_after_module_docstring lpar posonly_ind rbrace rbracket relative "
    "rpar second_colon semicolon star trailing_whitespace".split()
)
# Where the fields of a class are declared in another order than they stand in the text.
_IN_ORDER = {
    "Arg": ("keyword", "value"),
    "ClassDef": ("decorators", "name", "type_parameters", "bases", "keywords", "body"),
    "ExceptHandler": ("type", "name", "body"),
    "ExceptStarHandler": ("type", "name", "body"),
    "FunctionDef": ("decorators", "name", "type_parameters", "params", "returns", "body"),
    "IfExp": ("body", "test", "orelse"),
    "MatchCase": ("pattern", "guard", "body"),
    "Parameters": ("posonly_params", "params", "star_arg", "kwonly_params", "star_kwarg"),
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
    if kind.__name__ in _IN_ORDER:
        return _IN_ORDER[kind.__name__]
    names = (field.name for field in fields(kind))
    return tuple(name for name in names if name not in _PUNCTUATION and not name.startswith("whitespace"))


def inside(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it. (`libcst.matchers` would do, and takes as long to import as the rest of libcst.)"""
    pending = [node]
    while pending:
        below = pending.pop()
        yield below
        pending += reversed(children(below))
