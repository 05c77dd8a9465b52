"""What a caller gives for a parameter, told from the standard parser's trees."""

from __future__ import annotations

import ast

from torchmemlint.flow.call_sites import CallSite
from torchmemlint.flow.program import Function
from torchmemlint.syntax.outline import defaults


def call_at(site: CallSite) -> ast.Call | None:
    """The call whose function a mention is."""
    roots: list[ast.AST] = [site.syntax] if site.syntax is not None else []
    if site.syntax is None:
        roots = [piece.outline for piece in site.program.source.pieces if piece.outline is not None]
    calls = (node for root in roots for node in ast.walk(root) if isinstance(node, ast.Call))
    return next((call for call in calls if call.func is site.node), None)


def argument_of(
    call: ast.Call, site: CallSite, function: Function, parameter: str, *, skip_first: bool = False
) -> ast.expr | None:
    """The expression that a call has for a parameter, or the parameter's default; None where it cannot be told.

    `skip_first`: the call does not give the first parameter, as that of a class does not give its constructor `self`.
    """
    if function.syntax is None:
        return None
    given = function.syntax.args
    names = [one.arg for one in (*given.posonlyargs, *given.args)]
    is_bound = function.cls is not None and isinstance(site.node, ast.Attribute)
    if skip_first or (is_bound and "staticmethod" not in function.decorator_texts()):
        names = names[1:]
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    for name, value in zip(names, call.args, strict=False):
        if isinstance(value, ast.Starred):
            return None
        if name == parameter:
            return value
    return None if any(keyword.arg is None for keyword in call.keywords) else defaults(given).get(parameter)
