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


def of_name(name: str, roots: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, Taken]]:
    """The expressions that a variable is given in some function or statements, and what it is given of each."""
    for target, value, taken in _all(roots):
        for path in _positions(target, name):
            yield value, (*taken, *path)


def of_attribute(path: str, root: ast.AST) -> Iterator[tuple[ast.expr, Taken]]:
    """The same of an attribute, "self.data"."""
    for target, value, taken in _all([root]):
        for position in _positions(target, path):
            yield value, (*taken, *position)


def put_into(path: str, roots: Sequence[ast.AST]) -> Iterator[tuple[int | str | None, ast.expr]]:
    """What is put into a list or dictionary element by element, and under which key where that is told."""
    for node in _walk(roots):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Subscript) and dotted(target.value) == path:
                        yield constant(target.slice), value
            case ast.Call(func=ast.Attribute(value=owner, attr="append"), args=[value]) if dotted(owner) == path:
                yield None, value


def returned(syntax: Definition) -> Iterator[ast.expr]:
    """What a function returns."""
    for node in _walk([syntax]):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def parameters(syntax: Definition) -> list[ast.arg]:
    """The parameters of a function that are given one by one."""
    return [*syntax.args.posonlyargs, *syntax.args.args, *syntax.args.kwonlyargs]


def parts(node: ast.expr, keys: Taken) -> Iterator[tuple[ast.expr, Taken]]:
    """The expressions of which one is what an expression gives, or an element of it, and the keys that are left."""
    match node:
        case ast.IfExp(body=first, orelse=second):
            yield from ((first, keys), (second, keys))
        case ast.BoolOp(values=values):
            yield from ((value, keys) for value in values)
        case ast.NamedExpr(value=value) | ast.Await(value=value) | ast.Starred(value=value):
            yield value, keys
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from ((left, keys), (right, keys))
        case ast.Tuple(elts=elements) | ast.List(elts=elements) if keys:
            starred = any(isinstance(element, ast.Starred) for element in elements)
            for index, element in enumerate(elements):
                if starred or keys[0] in (None, index, index - len(elements)):
                    yield element, keys if isinstance(element, ast.Starred) else keys[1:]
        case ast.Dict(keys=names, values=values) if keys:
            for key, value in zip(names, values, strict=True):
                if key is None or keys[0] is None or constant(key) in (None, keys[0]):
                    yield value, keys if key is None else keys[1:]
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element) | ast.DictComp(value=element) if keys:
            yield element, keys[1:]


def constant(node: ast.expr) -> int | str | None:
    """The number or text that a key is, where it is written out."""
    match node:
        case ast.Constant(value=(int() | str()) as key):
            return key
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
    return None


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
