"""A program means the same in one file, in two and in three, and in whatever order the files are given."""

from __future__ import annotations

from itertools import permutations

import pytest

from .findings import found
from .programs import Program
from .programs.tables import larger
from .splitting import split, splittable

SINGLE = [p for p in larger() if len(p.files) == 1 and splittable(p.files["main.py"])]
SEVERAL = [p for p in larger() if len(p.files) > 1]


def _lines(findings: set[tuple[str, int, str]]) -> set[tuple[int, str]]:
    return {(line, code) for _, line, code in findings}


@pytest.mark.slow
@pytest.mark.parametrize("program", SINGLE, ids=lambda program: program.name)
def test_split(program: Program) -> None:
    two, three = (split(program.files["main.py"], parts) for parts in (2, 3))
    for files in (two, dict(reversed(three.items()))):
        assert _lines(found(files)) == _lines(set(program.expected))


@pytest.mark.slow
@pytest.mark.parametrize("program", SEVERAL, ids=lambda program: program.name)
def test_order_of_files(program: Program) -> None:
    for order in permutations(program.files):
        assert found({name: program.files[name] for name in order}) == program.expected


def test_enough_of_both() -> None:
    assert len(SINGLE) > 200
    assert len(SEVERAL) > 20
