"""Are holders of networks told as running the programs shows them?"""

from __future__ import annotations

import random

import pytest

from tests.truth.owners import Program, label, programs
from torchmemlint.flow.fact import cases

CODES = {"TML801", "TML802", "TML803", "TML804", "TML807"}
PROGRAMS = list(programs())


def told(program: Program) -> set[str]:
    """Return the codes of the family that are reported, with whatever confidence."""
    found = cases.cases({"program.py": program.text})
    return {case.code for case in found if case.code in CODES and not case.advice}


@pytest.mark.parametrize("program", random.Random(1).sample(PROGRAMS, 16), ids=lambda program: program.name)
def test_what_is_told_of_a_program_is_what_running_it_shows(program: Program) -> None:
    pytest.importorskip("torch")
    assert label(program) == program.code
    assert told(program) == ({program.code} if program.code else set())


@pytest.mark.slow
def test_nearly_all_holders_are_found_and_nothing_else_is_told() -> None:
    pytest.importorskip("torch")
    wrong = [program.name for program in PROGRAMS if label(program) != program.code]
    held = [program for program in PROGRAMS if program.code]
    missed = [program.name for program in held if program.code not in told(program)]
    false = [program.name for program in PROGRAMS if told(program) - {program.code}]
    assert not wrong
    assert len(missed) <= 0.05 * len(held), missed
    assert len(false) <= 0.005 * len(PROGRAMS), false
