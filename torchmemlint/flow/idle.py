"""Which top-level functions need no walk of their own, so that libcst need not read them.

Model libraries hold hundreds of functions that only put settings together and hand them to a builder:

    def resnet50(pretrained=False, **kwargs):
        return _create_resnet("resnet50", pretrained, **dict(layers=[3, 4, 6, 3], **kwargs))

No fact can come from such a function, and what it hands on ends in its callee, if that runs no class or method of the
file. The callee is told that somebody out of view calls it. Where an analysed function calls one, it is walked as ever.
"""

from __future__ import annotations

import ast
from collections.abc import Set

from torchmemlint.flow.program import BUILTINS, Program
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import imports, outline, parts, walk
from torchmemlint.syntax.source_module import Piece

_COLLECTING = frozenset({"dict", "list", "tuple", "set", "frozenset", "int", "float", "str", "bool", "len", "range"})
_TAKING = frozenset({"get", "pop", "setdefault", "update", "copy"})
_COLLECTING_LIBRARY = frozenset({"functools.partial", "collections.OrderedDict"})
_PLAIN = (
    ast.Constant, ast.Name, ast.Attribute, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Starred, ast.keyword,
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.JoinedStr, ast.FormattedValue, ast.Assign,
    ast.Return, ast.Expr, ast.Pass,
)  # fmt: skip


@immutable()
class Idle:
    """The functions that only hand settings on, each with the functions of the file that it calls."""

    handing: dict[Piece, set[str]]
    ends: frozenset[Piece]  # those whose callees run no class or method of the file

    def callees(self, pieces: Set[Piece]) -> set[str]:
        """What some of them call."""
        return set().union(*(self.handing[piece] for piece in pieces))


def find(program: Program) -> Idle:
    """The functions of the file that only hand settings on."""
    handing: dict[Piece, set[str]] = {}
    for piece in program.source.pieces:
        if not isinstance(piece.outline, ast.FunctionDef):
            continue
        called = _hands_on(piece.outline, program)
        if called is not None:
            handing[piece] = called
    known: dict[str, bool] = {}
    ends = (piece for piece, called in handing.items() if all(_is_end(program, name, known) for name in called))
    return Idle(handing, frozenset(ends))


def _hands_on(function: ast.FunctionDef, program: Program) -> set[str] | None:
    """The functions of the file that it calls, if it does nothing else than call them; else None."""
    decorators = [program.qualify(_first(decorator)) for decorator in function.decorator_list]
    if any(name.startswith(("torch", "functools")) for name in decorators):
        return None
    called: set[str] = set()
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if isinstance(node.func, ast.Attribute):
                if node.func.attr not in _TAKING or not isinstance(node.func.value, ast.Name):
                    return None
            elif program.is_function(name):
                called.add(name)
            elif name not in _COLLECTING and program.imported.get(name) not in _COLLECTING_LIBRARY:
                return None
            pending += node.args
            pending += (keyword.value for keyword in node.keywords)
            continue
        if not isinstance(node, _PLAIN):
            return None
        if isinstance(node, ast.Assign) and not all(isinstance(target, ast.Name) for target in node.targets):
            return None
        pending += parts(node)
    return called


def _first(decorator: ast.expr) -> str:
    while isinstance(decorator, ast.Call | ast.Attribute):
        decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
    return decorator.id if isinstance(decorator, ast.Name) else ""


def _is_end(program: Program, name: str, ends: dict[str, bool]) -> bool:
    """Does a function of the file run no class or method of the file, nor what it is handed?"""
    if name not in ends:
        ends[name] = False  # a function that calls itself is none
        ends[name] = _ends(program, name, ends)
    return ends[name]


def _ends(program: Program, name: str, ends: dict[str, bool]) -> bool:
    piece = program.piece(name)
    if piece is None or not isinstance(piece.outline, ast.FunctionDef):
        return False
    known = set(program.imported)
    for node in (node for part in piece.outline.body for node in walk(part)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return False
        if isinstance(node, ast.Import | ast.ImportFrom):
            known.update(local for local, _ in imports([node]))
    for path in outline(piece.outline).called:
        first, dot, _ = path.partition(".")
        if program.is_function(path):
            if not _is_end(program, path, ends):
                return False
        elif program.defines(first) or (not dot and first not in known and first not in BUILTINS):
            return False
    return True
