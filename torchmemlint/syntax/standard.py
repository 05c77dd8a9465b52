"""The standard parser, without a word to whoever runs the linter."""

from __future__ import annotations

import ast
import warnings


def parse(text: str) -> ast.Module:
    """The standard parser's tree of a text; raises what that parser raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's strings
        return ast.parse(text)


def expression(text: str) -> ast.expr:
    """The tree of an expression, likewise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(f"({text})", mode="eval").body
