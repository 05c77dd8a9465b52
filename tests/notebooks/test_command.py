"""Notebooks on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.notebooks.test_checking import MODEL, SETUP, TRAINING, demonstration
from torchmemlint.cli.main import main

Run = Callable[..., tuple[int, str, str]]
FIXED = TRAINING.replace("+= loss", "+= loss.detach()")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["check", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return command


def write(path: Path, *cells: str) -> bytes:
    nbformat.write(new_notebook(cells=[new_code_cell(cell) for cell in cells]), path)
    return path.read_bytes()


def codes(out: str) -> list[tuple[str, int | None]]:
    return [(found["code"], found["cell"]) for found in json.loads(out)]


JSON = ("--output-format", "json")
RULE = ("--select", "TML0,TML101")


def test_found_in_directories_and_fixed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes/.ipynb_checkpoints").mkdir(parents=True)
    for name in ("a.ipynb", "notes/b.ipynb", "notes/.ipynb_checkpoints/b-checkpoint.ipynb"):
        nbformat.write(demonstration(), tmp_path / name)
    code, out, _ = run(*RULE, *JSON)
    assert (code, codes(out)) == (1, [("TML101", 5)] * 2)
    code, out, _ = run(*RULE, "--fix")
    assert (code, "Fixed 2 problems in 2 files." in out) == (0, True)
    opened = nbformat.read(tmp_path / "notes/b.ipynb", as_version=4)
    assert opened.cells[4].source == FIXED
    untouched = nbformat.read(tmp_path / "notes/.ipynb_checkpoints/b-checkpoint.ipynb", as_version=4)
    assert untouched.cells[4].source == TRAINING
    assert run(*RULE)[0] == 0


def test_exclusions_and_ignores_by_pattern(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.ipynb", SETUP, MODEL, TRAINING)
    write(tmp_path / "b.ipynb", SETUP, MODEL, TRAINING)
    (tmp_path / "torchmemlint.toml").write_text(
        'select = ["TML101"]\nextend-exclude = ["a.ipynb"]\n[per-file-ignores]\n"*.ipynb" = ["TML101"]\n'
    )
    assert codes(run(*JSON)[1]) == []
    assert codes(run(*JSON, "--config", "per-file-ignores = {}")[1]) == [("TML101", 3)]
    assert codes(run(*JSON, "--config", "per-file-ignores = {}", "a.ipynb")[1]) == [("TML101", 3)]


def test_comments_silence_in_cells_and_in_the_whole_notebook(run: Run, tmp_path: Path) -> None:
    silenced = TRAINING.replace("# naïve", "# torchmemlint: ignore[TML101]")
    write(tmp_path / "a.ipynb", SETUP, MODEL, silenced)
    assert codes(run(*RULE, *JSON)[1]) == []
    write(tmp_path / "a.ipynb", SETUP, MODEL, TRAINING, "# torchmemlint: ignore-file[TML101]")
    assert codes(run(*RULE, *JSON)[1]) == []
    write(
        tmp_path / "a.ipynb", SETUP + "  # torchmemlint: ignore[TML101]", "x = 1  # torchmemlint: ignore[TML101]\n!ls"
    )
    assert codes(run(*RULE, *JSON)[1]) == [("TML001", 2)]  # in a command, it is none
    assert run(*RULE, "--fix")[0] == 0
    assert nbformat.read(tmp_path / "a.ipynb", as_version=4).cells[1].source == "x = 1\n!ls"


def test_diff_changes_nothing(run: Run, tmp_path: Path) -> None:
    before = write(tmp_path / "a.ipynb", SETUP, MODEL, TRAINING)
    code, out, _ = run(*RULE, "--diff")
    assert code == 1
    assert out.startswith("--- a.ipynb:cell 3\n+++ a.ipynb:cell 3\n@@")
    assert "+    total += loss.detach()  # naïve\n" in out
    assert (tmp_path / "a.ipynb").read_bytes() == before


@pytest.mark.parametrize("fix", [False, True])
def test_standard_input(tmp_path: Path, fix: bool) -> None:
    data = write(tmp_path / "a.ipynb", SETUP, MODEL, TRAINING)
    (tmp_path / "a.ipynb").unlink()
    command = [sys.executable, "-m", "torchmemlint", "check", *RULE, "-", "--stdin-filename", "a.ipynb", "--isolated"]
    done = subprocess.run([*command, *["--fix"] * fix], input=data, capture_output=True, cwd=tmp_path, env=os.environ)
    if fix:
        assert done.stdout == data.replace(b"+= loss", b"+= loss.detach()")
        assert b"Fixed 1 problem" in done.stderr or b"Would fix 1 problem" in done.stderr
    else:
        assert b"a.ipynb:cell 3:9:5" in done.stdout
        assert b"total += loss" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_add_ignores_writes_comments_into_cells(run: Run, tmp_path: Path) -> None:
    before = write(tmp_path / "a.ipynb", SETUP, MODEL, TRAINING)
    run(*RULE, "--add-ignores")
    after = (tmp_path / "a.ipynb").read_bytes()
    assert after != before
    assert after.replace("naïve  # torchmemlint: ignore[TML101]".encode(), "naïve".encode()) == before
    assert codes(run(*RULE, *JSON)[1]) == []


def test_results_are_the_same_when_kept(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.ipynb", SETUP, MODEL, TRAINING, "x = (")
    for output_format in ("json", "full", "rdjson", "sarif", "markdown"):
        fresh = run("--no-cache", "--output-format", output_format)
        assert run("--output-format", output_format) == fresh
        assert run("--output-format", output_format) == fresh


def test_a_notebook_uses_the_files_beside_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "meters.py").write_text(
        "class Meter:\n    def __init__(self):\n        self.values = []\n\n"
        "    def update(self, value):\n        self.values.append(value)\n"
    )
    training = TRAINING.replace("total = 0.0", "meter = Meter()").replace("total += loss", "meter.update(loss)")
    write(tmp_path / "a.ipynb", SETUP + "\nfrom meters import Meter", MODEL, training.replace("total", "meter.values"))
    found = json.loads(run("--select", "TML102", *JSON)[1])
    assert [(one["code"], one["cell"]) for one in found] == [("TML102", 3)]
    evidence = [(Path(one["filename"]).name, one["cell"]) for one in found[0]["evidence"]]
    assert ("meters.py", None) in evidence
    assert ("a.ipynb", 3) in evidence


def test_a_baseline_knows_what_is_in_cells(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.ipynb", SETUP, MODEL, TRAINING)
    assert main(["baseline", "create"]) == 0
    assert run(*RULE)[0] == 0
    write(tmp_path / "a.ipynb", "# Another cell", SETUP, MODEL, "x = 1", TRAINING)  # the same, further down
    assert run(*RULE)[0] == 0
    write(tmp_path / "a.ipynb", SETUP, MODEL, TRAINING, TRAINING.replace("total", "other"))
    assert codes(run(*RULE, *JSON)[1]) == [("TML101", 4)]


def test_only_what_is_new_since_a_revision(run: Run, tmp_path: Path) -> None:
    function = "def train():\n    " + TRAINING.split("\n", 2)[2].replace("\n", "\n    ")
    write(tmp_path / "a.ipynb", SETUP, MODEL, function)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    write(tmp_path / "a.ipynb", "x = 1\n!ls", SETUP, MODEL, function, TRAINING.replace("total", "other"))
    assert codes(run(*RULE, *JSON)[1]) == [("TML101", 4), ("TML101", 5)]
    assert codes(run(*RULE, *JSON, "--new-since", "HEAD")[1]) == [("TML101", 5)]
