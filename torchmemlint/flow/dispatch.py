"""Which function reads which kind of syntax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from torchmemlint.flow import attributes, calls, expressions, statements
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Value

EVALUATORS: dict[type, Callable[[Interpreter, Any], Value]] = {
    cst.Name: expressions.name,
    cst.Integer: expressions.integer,
    cst.Float: expressions.floating,
    cst.Imaginary: expressions.ellipsis,
    cst.SimpleString: expressions.string,
    cst.ConcatenatedString: expressions.concatenated_string,
    cst.FormattedString: expressions.formatted_string,
    cst.Ellipsis: expressions.ellipsis,
    cst.BinaryOperation: expressions.binary,
    cst.UnaryOperation: expressions.unary,
    cst.Comparison: expressions.comparison,
    cst.BooleanOperation: expressions.boolean,
    cst.IfExp: expressions.conditional,
    cst.Tuple: expressions.tuple_or_list,
    cst.List: expressions.tuple_or_list,
    cst.Set: expressions.tuple_or_list,
    cst.Dict: expressions.dictionary,
    cst.ListComp: expressions.comprehension,
    cst.SetComp: expressions.comprehension,
    cst.GeneratorExp: expressions.comprehension,
    cst.DictComp: expressions.comprehension,
    cst.Subscript: expressions.subscript,
    cst.Lambda: expressions.lambda_,
    cst.Await: expressions.await_,
    cst.Yield: expressions.yield_,
    cst.NamedExpr: expressions.named,
    cst.StarredElement: expressions.starred,
    cst.Attribute: attributes.attribute,
    cst.Call: calls.call,
}

EXECUTORS: dict[type, Callable[[Interpreter, Any], None]] = {
    cst.Expr: statements.expression_statement,
    cst.Assign: statements.assign_statement,
    cst.AnnAssign: statements.annotated_statement,
    cst.AugAssign: statements.augmented_statement,
    cst.Return: statements.return_statement,
    cst.Raise: statements.raise_statement,
    cst.Assert: statements.assert_statement,
    cst.Del: statements.delete_statement,
    cst.Global: statements.global_statement,
    cst.Nonlocal: statements.global_statement,
    cst.Import: statements.import_statement,
    cst.ImportFrom: statements.import_from_statement,
    cst.Break: statements.break_statement,
    cst.Continue: statements.continue_statement,
    cst.If: statements.if_statement,
    cst.Try: statements.try_statement,
    cst.TryStar: statements.try_statement,
    cst.Match: statements.match_statement,
    cst.With: statements.with_statement,
    cst.For: statements.for_statement,
    cst.While: statements.while_statement,
    cst.FunctionDef: statements.function_statement,
    cst.ClassDef: statements.class_statement,
}
