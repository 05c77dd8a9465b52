"""Programs: the same seed gives the same text, every value occurs, and nothing is left open."""

from __future__ import annotations

import ast
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.truth import tables
from tests.truth.build import Program
from tests.truth.choice import ImpossibleError
from tests.truth.examples import fingerprint
from tests.truth.forms import Source
from tests.truth.grid import grid, plainest
from tests.truth.sample import KEPT, Plan, first_of, plans, twin_of
from tests.truth.tables.words import NAMES

ROOT = Path(__file__).resolve().parents[2]


def some(count: int, seed: int = 3) -> list[Program]:
    return [first_of(seed, plan) for plan in plans(seed, count)]


@cache
def programs() -> list[Program]:
    return some(60)


@cache
def of_grid() -> list[tuple[Plan, Program]]:
    return [(plan, first_of(0, plan)) for plan in grid(0, 1)]


def test_the_same_seed_gives_the_same_programs_in_every_process() -> None:
    program = (
        "from tests.truth.examples import fingerprint\nfrom tests.truth.sample import first_of, plans\n"
        "print([fingerprint(first_of(3, plan)) for plan in plans(3, 20)])"
    )
    here = str([fingerprint(program) for program in programs()[:20]])
    for seed in "01":
        variables = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=variables, cwd=ROOT
        )
        assert done.stdout.strip() == here


def test_a_pair_does_not_depend_on_how_many_there_are() -> None:
    assert [program.files for program in some(3)] == [program.files for program in programs()[:3]]


def test_another_seed_gives_other_programs() -> None:
    assert not {fingerprint(program) for program in some(20, seed=4)} & {fingerprint(program) for program in programs()}


def test_every_value_of_every_table_occurs_in_the_grid() -> None:
    for plan, program in of_grid():
        dimension, _, value = plan.strange.partition("=")
        assert program.values[dimension] == value
    strange = {plan.strange for plan, _ in of_grid()}
    assert strange == {f"{dimension}={value}" for dimension, values in tables.dimensions().items() for value in values}
    assert len(strange) > 350


def test_the_tables_are_complete() -> None:
    assert {source.network for source in tables.SOURCE.values()} == tables.NETWORK.keys()
    kinds = {holder.kind for holder in tables.HOLDER.values()} - {"own", "hook"}
    assert kinds == tables.WAY.keys() == tables.FOLD.keys() == tables.PLAIN_WAY.keys()
    assert kinds <= tables.CLEAR.keys()
    for dimension, value in tables.PLAIN.items():
        assert value in tables.dimensions()[dimension]


@pytest.mark.parametrize("made", [programs, lambda: [program for _, program in of_grid()]], ids=["drawn", "grid"])
def test_the_files_of_a_program(made: Callable[[], list[Program]]) -> None:
    for program in made():
        assert "main.py" in program.files
        for name, text in program.files.items():
            ast.parse(text, feature_version=(3, 10))
            assert "#@" not in text
            assert not re.search(r"\{(v|t|f|s|c|m|o|r|obj|attr|clear|first|zero|net|put)\}", text), text
            assert "\n\n\n\n" not in text, name
        assert program.marks["put"]
        for kind, marks in program.marks.items():
            for file, line in marks:
                text = program.files[file].split("\n")[line - 1].strip()
                assert text
                assert kind != "pass" or "(x" in text or "checkpoint(" in text, text


def test_files_take_from_each_other_what_they_use() -> None:
    files = {len(program.files) for program in programs()}
    assert {1, 2, 3} <= files
    for program in [*programs(), *(program for _, program in of_grid())]:
        for name, text in program.files.items():
            for module in re.findall(r"^from (\w+) import", text, re.MULTILINE):
                if f"{module}.py" in program.files:
                    assert f"{module}.py" != name


def test_a_twin_shares_what_twins_share() -> None:
    for plan, program in zip(plans(3, 30), programs(), strict=False):
        twin = twin_of(3, plan, program, harmful=program.form == "leak")
        assert twin.values != program.values
        assert twin.seed == program.seed
        assert [twin.values[name] for name in KEPT] == [program.values[name] for name in KEPT]


def test_what_must_be_in_a_program_is() -> None:
    required = [("holder", "meters"), ("loop", "recursion")]
    for plan in plans(1, 10, required):
        values = first_of(1, plan).values
        assert values["holder"] == "meters" or values["loop"] == "recursion"


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ImpossibleError):
        first_of(1, Plan(0, {"holder": "buffer", "source": "eval_output"}))


def test_new_names_are_no_names_of_the_tables() -> None:
    """A name that programs are given must not be one that a table uses for something else."""
    new = {name for names in NAMES.values() for name in names} - NAMES.keys()
    for dimension in ("source", "holder", "carrier", "loop", "fate", "mode"):
        for value in tables.dimensions()[dimension]:
            values = plainest(random.Random(0), dimension, value)
            source: Source = tables.SOURCE[values["source"]]
            holder = tables.HOLDER[values["holder"]]
            lines = (*source.lines, *source.top, *source.setup, *holder.top, *holder.init)
            bound = set(re.findall(r"(?<![.\w\"])(\w+)(?: =|, \w+ =)", "\n".join(lines)))
            assert not bound & new, (dimension, value)
