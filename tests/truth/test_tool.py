"""`tools/truth.py`: what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.tools import tool
from tests.truth import tables

ROOT = Path(__file__).resolve().parents[2]
TOOL = tool("truth")


def loud(files: dict[str, str]) -> list[tuple[str, int, str, str]]:
    """A checker that reports every file."""
    return [(name, 1, "TML101", "certain") for name in files]


LOUD = f"{__name__}:loud"


def test_the_linter_is_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, figures = tmp_path / "programs", tmp_path / "figures.json"
    code = TOOL.main(["--seed", "3", "--count", "5", "--rewrite", "1", "--keep", str(kept), "--json", str(figures)])
    printed = capsys.readouterr().out
    assert code == 0
    for words in (
        "pairs told apart",
        "leaks found",
        "on the line",
        "waste found",
        "clean, reported",
        "source",
        "rewriting",
    ):
        assert words in printed
    read = json.loads(figures.read_text())
    assert read["pairs"]["all"] <= 5
    assert len(read["programs"]) == 10
    assert read["rewritings"]["same"]["total"] == 1
    labels = json.loads((kept / "labels.json").read_text())
    assert labels.keys() == read["programs"].keys()
    for name, label in labels.items():
        for file, line in label["marks"]["put"]:
            assert (kept / name / file).read_text().split("\n")[line - 1].strip()


def test_another_checker_is_scored_on_the_same_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    TOOL.main(["--seed", "3", "--count", "5", "--checker", LOUD, "--json", str(figures)])
    read = json.loads(figures.read_text())
    assert read["pairs"]["told apart"] == 0
    assert read["pairs"]["both reported"] == read["pairs"]["all"]
    assert "pairs told apart" in capsys.readouterr().out


def test_a_checker_needs_a_function() -> None:
    with pytest.raises(SystemExit, match="a module and a function are needed"):
        TOOL.checker_named("os.path")


def test_values_of_a_private_file_are_in_each_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    private = tmp_path / "private.py"
    private.write_text(
        'T.CARRIER["in_a_list"] = T.Carrier("[{v}]", "{c}[0]")\n'
        'T.LOOP["reversed"] = lambda body: ["for x, y in reversed(list(loader)):", *T.ind(body)]\n'
        'T.CUT["halved"] = "{v} / 2"\n'
    )
    figures = tmp_path / "figures.json"
    try:
        TOOL.main(["--count", "6", "--private", str(private), "--checker", LOUD, "--json", str(figures)])
    finally:
        for table, name in ((tables.CARRIER, "in_a_list"), (tables.LOOP, "reversed"), (tables.CUT, "halved")):
            assert name in table
            del table[name]
    programs = json.loads(figures.read_text())["programs"].values()
    assert programs
    for program in programs:
        values = program["values"]
        assert (values["carrier"], values["loop"], values["cut"]) != ("name", "for", "none")
        assert values["carrier"] == "in_a_list" or values["loop"] == "reversed" or values["cut"] == "halved"
    assert "in_a_list" in capsys.readouterr().out


def test_the_labels_are_stored_as_the_tests_read_them(tmp_path: Path) -> None:
    from tests.truth.stored import load

    stored = tmp_path / "sample.json"
    assert TOOL.main(["--seed", "1", "--count", "3", "--store", str(stored)]) == 0
    again, kept = list(load(stored)), list(load(count=3))
    assert [[example.label.truth for example in pair] for pair in again] == [
        [example.label.truth for example in pair] for pair in kept
    ]
