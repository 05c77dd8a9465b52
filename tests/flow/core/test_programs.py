"""Each program shows what it is marked with, and its harmless twin nothing."""

from __future__ import annotations

import pytest

from .findings import found
from .programs import Program
from .programs.tables import beside, programs


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
def test_findings(program: Program) -> None:
    assert found(program.files) == program.expected


@pytest.mark.parametrize("program", beside(), ids=lambda program: program.name)
def test_findings_beside(program: Program) -> None:
    assert found(program.files, beside=True) == program.expected


def test_names_and_marks() -> None:
    every = [*programs(), *beside()]
    names = [program.name for program in every]
    assert len(names) == len(set(names))
    assert all(not program.expected for program in every if program.name.endswith(", harmless"))


def test_programs_are_short() -> None:
    for program in (*programs(), *beside()):
        assert all(text.count("\n") < 70 for text in program.files.values()), program.name
