"""Dotted names: of decorators, base classes and annotations, as written or qualified through the imports."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping


def dotted(node: ast.expr | None) -> str:
    """`a.b.c` as a text, or an empty one."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def qualified(text: str, aliases: Mapping[str, str]) -> str:
    """A dotted name with what the file imports its head from."""
    head, dot, rest = text.partition(".")
    return f"{aliases.get(head, head)}{dot}{rest}"


def base_name(node: ast.expr, aliases: Mapping[str, str]) -> str:
    """A base class: `nn.Module`, `Generic[T]`, or what makes it by being called."""
    while isinstance(node, (ast.Subscript, ast.Call)):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return qualified(dotted(node), aliases)


def annotation_name(node: ast.expr | None, aliases: Mapping[str, str]) -> str:
    """The one class that an annotation names; empty if it names several, or a container of something.

    Of a generic class (`Decoder[CacheT]`) that is the class.
    """
    if node is None:
        return ""
    if isinstance(node, (ast.Name, ast.Attribute)):
        return qualified(dotted(node), aliases)
    if isinstance(node, ast.Constant):
        return _text_name(node.value, aliases) if isinstance(node.value, str) else ""
    if isinstance(node, ast.BinOp):
        return _only([node.left, node.right], aliases) if isinstance(node.op, ast.BitOr) else ""
    if isinstance(node, ast.Subscript):
        inner = node.slice
        outer = dotted(node.value).rpartition(".")[2]
        if outer in _WRAPPERS:
            return annotation_name(inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner, aliases)
        if outer == "Union":
            return _only(inner.elts if isinstance(inner, ast.Tuple) else [inner], aliases)
        name = qualified(dotted(node.value), aliases)
        return "" if hasattr(builtins, name) or name.startswith(_CONTAINERS) else name
    return ""


_CONTAINERS = ("typing.", "typing_extensions.", "collections.")
_WRAPPERS = frozenset({"Optional", "Annotated", "ClassVar", "Final", "Required", "NotRequired", "ReadOnly"})


def _only(members: list[ast.expr], aliases: Mapping[str, str]) -> str:
    """Of a union, the member that is not None, if there is just one; of several networks the last, which is general."""
    others = [member for member in members if not (isinstance(member, ast.Constant) and member.value is None)]
    if len(others) == 1:
        return annotation_name(others[0], aliases)
    names = [annotation_name(member, aliases) for member in others]
    return names[-1] if names and names[-1].endswith("nn.Module") else ""


def _text_name(text: str, aliases: Mapping[str, str]) -> str:
    """An annotation that is written as a text."""
    if text.replace(".", "").isidentifier():
        return qualified(text, aliases)
    try:
        return annotation_name(ast.parse(text.strip(), mode="eval").body, aliases)
    except (SyntaxError, ValueError):
        return ""
