"""What names, attributes and elements are bound to, on the standard parser's trees: of files that are not analysed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import libcst as cst

from torchmemlint.flow.program import Program
from torchmemlint.syntax.outline import dotted
from torchmemlint.syntax.text import code_of

Definition: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Taken: TypeAlias = "tuple[int | str | None, ...]"  # keys of what is taken out of a value; None: any element
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def expression_of(node: cst.CSTNode) -> ast.expr | None:
    """A libcst expression as the standard parser's; None where that one knows less of the language."""
    try:
        return ast.parse(f"({code_of(node)}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def module_level(program: Program) -> list[ast.stmt]:
    """The statements of a file that define neither a function nor a class."""
    pieces = program.source.pieces
    return [piece.outline for piece in pieces if piece.kind == "code" and piece.outline is not None]


def of_attribute(path: str, root: ast.AST) -> Iterator[tuple[ast.expr, Taken]]:
    """The same of an attribute, "self.data"."""
    for target, value, taken in _all([root]):
        for position in _positions(target, path):
            yield value, (*taken, *position)


def parameters(syntax: Definition) -> list[ast.arg]:
    """The parameters of a function that are given one by one."""
    return [*syntax.args.posonlyargs, *syntax.args.args, *syntax.args.kwonlyargs]


def _all(roots: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr, Taken]]:
    """Targets, what they are given, and what of it."""
    for node in _walk(roots):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value, ()) for target in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                yield target, value, ()
            case ast.AugAssign(target=target, value=value):
                yield target, value, ()
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                yield target, value, (None,)
            case ast.comprehension(target=target, iter=value):
                yield target, value, (None,)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                yield target, value, ()


def _positions(target: ast.expr, path: str) -> Iterator[Taken]:
    """Where in a target a variable or attribute stands: () for the whole."""
    match target:
        case ast.Name() | ast.Attribute():
            if dotted(target) == path:
                yield ()
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for index, element in enumerate(elements):
                starred = any(isinstance(one, ast.Starred) for one in elements[: index + 1])
                inner = element.value if isinstance(element, ast.Starred) else element
                for rest in _positions(inner, path):
                    yield (None if starred else index, *rest)


def _walk(roots: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All nodes, but for those of functions and classes within."""
    pending: list[ast.AST] = []
    for root in roots:
        pending += list(ast.iter_child_nodes(root)) if isinstance(root, _SCOPES) else [root]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _SCOPES):
            pending += ast.iter_child_nodes(node)
