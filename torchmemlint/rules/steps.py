"""Conditions and loops around a fact: does it happen each time?"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from torchmemlint.knowledge.services import ACCELERATORS
from torchmemlint.syntax.text import text_of


def always(tests: Iterable[tuple[cst.BaseExpression, bool]]) -> bool:
    """Are these conditions met each time, on a machine with an accelerator, in a program that is run?"""
    return all(_on_an_accelerator(test, met) or in_a_script(test, met) for test, met in tests)


def _on_an_accelerator(test: cst.BaseExpression, met: bool) -> bool:
    """`torch.cuda.is_available()`, `device.type == "cuda"`, `"cuda" in str(device)`."""
    match test:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="is_available"))):
            return met
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.In())]):
            return met and any(f"{quote}{name}" in text_of(test) for quote in "'\"" for name in ACCELERATORS)
        case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
            return met and _on_an_accelerator(left, met) and _on_an_accelerator(right, met)
    return False


def in_a_script(test: cst.BaseExpression, met: bool) -> bool:
    """`__name__ == "__main__"`."""
    return met and text_of(test).replace("'", '"') in ('__name__ == "__main__"', '"__main__" == __name__')
