"""What the standard parser's tree tells cheaply about a piece: its names, nodes and imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Outline:
    """A summary of a stretch of code.

    `names` are all identifiers (of names, attributes and keywords); `nodes` all nodes but names and constants, outer
    ones first; `depth` is how deep statements and expressions are nested.
    """

    names: set[str] = field(default_factory=set)
    nodes: list[ast.AST] = field(default_factory=list)
    depth: int = 0


# What stands in fields of nodes and holds no call.
_LEAVES = frozenset({int, float, complex, bytes, bool, type(None), type(...), ast.Constant})
_UNTOLD = frozenset({"ctx", "op", "ops", "type_comment", "type_ignores", "kind"})  # nor do these fields
# By class, the fields in which names, other nodes or lists of them stand.
_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(name for name in kind._fields if name not in _UNTOLD)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
# Of these, those in which other nodes or lists of them stand.
_TEXTS = frozenset({"id", "attr", "arg", "name", "asname", "module", "level", "is_async", "simple", "conversion"})
_PARTS: dict[type, tuple[str, ...]] = {
    kind: tuple(name for name in fields if name not in _TEXTS) for kind, fields in _FIELDS.items()
}
_PARTS[ast.Constant] = ()


def parts(node: ast.AST) -> list[ast.AST]:
    """As `ast.iter_child_nodes`, but for what tells an operator or a context."""
    found: list[Any] = []
    values = node.__dict__
    for name in _PARTS[node.__class__]:
        value: Any = values.get(name)
        kind = value.__class__
        if kind is list:
            found += (item for item in value if item.__class__ in _PARTS)
        elif kind in _PARTS:
            found.append(value)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """As `ast.walk`, of `parts`."""
    pending = [node]
    for one in pending:  # which grows on the way
        yield one
        pending += parts(one)


def outline(statement: ast.AST) -> Outline:
    """Summarise everything inside `statement`."""
    found = Outline()
    nodes, add = found.nodes, found.names.add
    level: list[Any] = [statement]
    while level:
        found.depth += 1
        nodes += level
        below: list[Any] = []
        for node in level:
            kind = node.__class__
            if kind is ast.Attribute:  # the most frequent, told here in half the time
                add(node.attr)
                value = node.value
                if value.__class__ is ast.Name:
                    add(value.id)
                elif value.__class__ not in _LEAVES:
                    below.append(value)
                continue
            values = node.__dict__
            for name in _FIELDS[kind]:
                value = values.get(name)
                kind = value.__class__
                if kind is ast.Name:
                    add(value.id)
                elif kind is str:
                    add(value)
                elif kind is list:
                    for item in value:
                        kind = item.__class__
                        if kind is ast.Name:
                            add(item.id)
                        elif kind is str:
                            add(item)
                        elif kind not in _LEAVES:
                            below.append(item)
                elif kind not in _LEAVES:
                    below.append(value)
        level = below
    return found


def dotted(node: ast.expr) -> str:
    """The text of a plain name or attribute chain, else ""."""
    if isinstance(node, ast.Name):
        return node.id
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    names.append(node.id)
    return ".".join(reversed(names))


def imports(statements: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """(local name, qualified name) of the imports among top-level statements, also inside `try` and `if`.

    A relative import keeps its leading dots (".layers.Mlp").
    """
    for statement in statements:
        match statement:
            case ast.Import(names=names):
                for alias in names:
                    if alias.asname:
                        yield alias.asname, alias.name
                    else:
                        first = alias.name.split(".")[0]
                        yield first, first
            case ast.ImportFrom(names=names):
                base = "." * statement.level + (statement.module or "")
                for alias in names:
                    separator = "" if base.endswith(".") or not base else "."
                    yield alias.asname or alias.name, f"{base}{separator}{alias.name}"
            case ast.If() | ast.Try() | ast.With():
                for inner in ("body", "orelse", "finalbody"):
                    yield from imports(getattr(statement, inner, []))
                for handler in getattr(statement, "handlers", []):
                    yield from imports(handler.body)
