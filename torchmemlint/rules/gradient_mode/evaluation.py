"""Conditions that hold only while nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.text import string_value
from torchmemlint.syntax.walking import inside

_PHASES = frozenset("dev eval evaluate evaluation test testing val valid validation infer inference predict".split())


def evaluates(tests: Sequence[tuple[cst.BaseExpression, bool]]) -> bool:
    """Does one of the conditions around a place say that the module is not being trained?

    `not self.training`, the else branch of `self.training`, or a phase that is compared with its names:
    `mode in ["dev", "test"]`.
    """
    return any(_says_so(test, holds) for test, holds in tests)


def _says_so(test: cst.BaseExpression, holds: bool) -> bool:
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _says_so(inner, not holds)
        case cst.Attribute():
            return dotted_text(test) == "self.training" and not holds
        case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
            return holds and (_says_so(left, True) or _says_so(right, True))
        case cst.BooleanOperation(left=left, operator=cst.Or(), right=right):
            return not holds and (_says_so(left, False) or _says_so(right, False))
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.In(), comparator=named)]):
            texts = [_text(found) for found in inside(named) if isinstance(found, cst.SimpleString)]
            return holds and bool(texts) and all(_is_phase(text) for text in texts)
    return False


def _text(node: cst.SimpleString) -> str:
    value = string_value(node)
    return value if isinstance(value, str) else ""


def _is_phase(text: str) -> bool:
    """`"dev"`, and `"sws2013_eval"`."""
    return not _PHASES.isdisjoint(text.lower().replace("-", "_").split("_"))
