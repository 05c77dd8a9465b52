"""What IPython itself makes of a cell, in the form that ours can be compared with."""

from __future__ import annotations

import ast
import re
import warnings

from IPython.core.inputtransformer2 import TransformerManager

from torchmemlint.source.magics import _PYTHON_CELLS


def parsed(cell: str) -> ast.Module | None:
    """The Python of a cell with a `pass` for each command; None where IPython cannot read it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(TransformerManager().transform_cell(cell))
        except (SyntaxError, ValueError):
            return None
    match tree.body:
        case [ast.Expr(ast.Call(ast.Attribute(attr="run_cell_magic"), [name, _, body]))]:
            assert isinstance(name, ast.Constant)
            assert isinstance(body, ast.Constant)
            return parsed(body.value) if name.value in _PYTHON_CELLS else ast.Module([], [])
    found = _Commands().visit(tree)
    assert isinstance(found, ast.Module)
    return found


class _Commands(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        match node.value:
            case ast.Call(ast.Attribute(ast.Call(ast.Name("get_ipython"))), arguments):
                match arguments:
                    case [ast.Constant("time"), ast.Constant(str(code))]:
                        try:
                            return ast.parse(code.strip()).body or [ast.Pass()]
                        except SyntaxError:
                            return ast.Pass()
                return ast.Pass()
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node.func:
            case ast.Attribute(ast.Call(ast.Name("get_ipython")) as shell):
                return shell
        return self.generic_visit(node)


def shape(tree: ast.Module) -> str:
    """A tree in a form to compare. IPython empties the blank rows within strings; ours leaves them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = re.sub(r"(?m)[ \t]+$", "", node.value)
    return ast.dump(tree)
