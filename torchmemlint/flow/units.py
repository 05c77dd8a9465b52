"""A function or method of the file, as the syntax shows it before anything is walked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.syntax.outline import Outline, walk

_Node = TypeVar("_Node", bound=ast.AST)
Loop: TypeAlias = "ast.For | ast.AsyncFor | ast.comprehension"
Store: TypeAlias = "tuple[ast.expr, ast.expr | None]"


@dataclass(eq=False, slots=True)
class Unit:
    """A top-level function or a method."""

    function: Function
    syntax: ast.FunctionDef | ast.AsyncFunctionDef
    cls: ClassInfo | None
    attributes: set[str] = field(default_factory=set)  # that its sign is about
    _by_kind: dict[type[ast.AST], list[ast.AST]] | None = None
    _stores: list[Store] | None = None

    @property
    def outline(self) -> Outline:
        """What it calls and names."""
        return self.function.outline

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.function.name

    @property
    def in_module(self) -> bool:
        """Is it a method of an `nn.Module`?"""
        return self.cls is not None and self.cls.is_module

    def nodes(self, kind: type[_Node]) -> list[_Node]:
        """All nodes of a kind (not of names and constants), outer ones first."""
        if self._by_kind is None:
            self._by_kind = {}
            for node in self.outline.nodes:
                self._by_kind.setdefault(node.__class__, []).append(node)
        return self._by_kind.get(kind, [])  # type: ignore[return-value]

    def loops(self) -> list[ast.For | ast.AsyncFor | ast.While]:
        """Its loops, also those of functions within it."""
        return [*self.nodes(ast.For), *self.nodes(ast.AsyncFor), *self.nodes(ast.While)]

    @property
    def stores(self) -> list[Store]:
        """All targets that are assigned to, with the value where there is one of its own."""
        if self._stores is None:
            self._stores = list(_stores(self))
        return self._stores

    def iterations(self) -> list[Loop]:
        """Its `for` loops and comprehensions."""
        return [*self.nodes(ast.For), *self.nodes(ast.AsyncFor), *self.nodes(ast.comprehension)]


def _stores(unit: Unit) -> Iterator[Store]:
    for assign in unit.nodes(ast.Assign):
        for target in assign.targets:
            yield from _single(target, assign.value)
    for annotated in unit.nodes(ast.AnnAssign):
        if annotated.value is not None:
            yield annotated.target, annotated.value
    for augmented in unit.nodes(ast.AugAssign):
        yield augmented.target, None
    for loop in unit.iterations():
        yield from _single(loop.target, None)
    for walrus in unit.nodes(ast.NamedExpr):
        yield walrus.target, walrus.value
    for item in unit.nodes(ast.withitem):
        if item.optional_vars is not None:
            yield from _single(item.optional_vars, None)


def _single(target: ast.expr, value: ast.expr | None) -> Iterator[Store]:
    if isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
        for index, element in enumerate(target.elts):
            yield from _single(element, parts[index] if parts is not None else value)
    else:
        yield target, value


def names_in(node: ast.AST) -> set[str]:
    """All names and attributes within an expression."""
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    }
