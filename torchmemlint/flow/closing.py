"""The call that a script ends with: `if __name__ == "__main__": main()`.

Nothing comes after it, and nobody takes its result. The function's own analysis, which takes facts down, is the walk of
that call as well; to follow the call would be to walk all that the script does twice in each pass.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from torchmemlint.flow.program import Function, Program


def call(program: Program, functions: Sequence[Function]) -> cst.Call | None:
    """The last thing that the module level does, where that is to call one of these functions."""
    code = [piece for piece in program.source.pieces if piece.kind == "code"]
    if not code or code[-1].outline is None:
        return None
    name = _called(code[-1].outline)
    found = next((f for f in functions if f.cls is None and f.name == name), None)
    if found is None or found.piece is not program.piece(found.name) or not _is_plain(found):
        return None
    node = _last(code[-1].module.body)
    return node if node is not None and isinstance(node.func, cst.Name) and node.func.value == name else None


def _called(statement: ast.stmt) -> str:
    """The name of the function that a statement calls last."""
    while isinstance(statement, ast.If) and not statement.orelse:
        statement = statement.body[-1]
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return name
    return ""


def _last(statements: Sequence[cst.CSTNode]) -> cst.Call | None:
    """The call that a suite ends with."""
    match statements[-1] if statements else None:
        case cst.If(body=body, orelse=None):
            return _last(body.body)
        case cst.SimpleStatementLine(body=[*_, cst.Expr(value=cst.Call() as node)]):
            return node
        case cst.Expr(value=cst.Call() as node):  # `if __name__ == "__main__": main()` on one line
            return node
    return None


def _is_plain(function: Function) -> bool:
    """Is its body run by the call, and does it leave the gradient mode as it was?"""
    syntax = function.syntax
    return isinstance(syntax, ast.FunctionDef) and "set_grad_enabled" not in function.outline.names
