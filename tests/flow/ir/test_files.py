"""Lowering holds for whatever people write: the standard library, and torch where it is installed."""

from __future__ import annotations

import ast
import importlib.util
import warnings
from pathlib import Path

import pytest

from torchmemlint.flow.ir.lower import lower

from .printing import printed
from .test_scopes import FILES
from .verifying import problems


def torch_files() -> list[Path]:
    found = importlib.util.find_spec("torch")
    return [] if found is None or found.origin is None else sorted(Path(found.origin).parent.rglob("*.py"))


@pytest.mark.parametrize("part", [0, 1, *(pytest.param(part, marks=pytest.mark.slow) for part in range(2, 8))])
def test_a_quarter_of_all_files(part: int) -> None:
    checked = 0
    for index, path in enumerate([*FILES, *torch_files()][part::32]):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, ValueError):  # files that tests of Python want broken
            continue
        unit = lower(tree, path.stem)
        if index % 4 == 0:  # that takes longer
            assert not problems(unit), path
            for function in unit.functions:
                printed(function)
            checked += 1
    assert checked > 5
