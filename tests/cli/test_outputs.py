"""Which reports are asked for, and where each goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from torchmemlint.report.formats import FORMATS

from .conftest import Run

LEAK = "import torch\nLEAK101\n"


@pytest.fixture(autouse=True)
def leak(project: Path) -> None:
    (project / "a.py").write_text(LEAK)


def test_several_at_once_to_standard_output_and_to_files(run: Run, project: Path) -> None:
    code, out, err = run("--output-format", "json:found.json,concise", "--output-format=gitlab:quality.json", "a.py")
    assert (code, err) == (1, "")
    assert out.startswith("a.py:2:1: TML101 ")
    assert json.loads((project / "found.json").read_text())[0]["code"] == "TML101"
    assert json.loads((project / "quality.json").read_text())[0]["location"]["lines"]["begin"] == 2


def test_formats_that_are_lines_share_standard_output(run: Run) -> None:
    out = run("-q", "--output-format=github,concise,pylint", "a.py").out.splitlines()
    assert [line.partition(" ")[0] for line in out] == ["::error", "a.py:2:1:", "a.py:2:"]


def test_the_output_file_is_for_the_format_without_one(run: Run, project: Path) -> None:
    assert run("--output-format=json:found.json,concise", "-o", "report.txt", "a.py").out == ""
    assert (project / "report.txt").read_text().startswith("a.py:2:1: ")
    assert (project / "found.json").read_text().startswith("[")


def test_a_dash_is_standard_output(run: Run, project: Path) -> None:
    assert run("--output-format=json:-", "a.py").out == run("--output-format=json", "a.py").out
    assert run("--output-format=json", "-o", "-", "a.py").out == run("--output-format=json", "a.py").out
    assert not (project / "-").exists()


def test_the_environment_may_name_several(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHMEMLINT_OUTPUT_FORMAT", "concise,json:with space.json")
    assert run("a.py").out.startswith("a.py:2:1: ")
    assert (project / "with space.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output-format=json,concise",), "`json` cannot share standard output with `concise`"),
        (("--output-format=concise,gitlab",), "`gitlab` cannot share standard output with `concise`"),
        (("--output-format=json", "--output-format=json"), "cannot share standard output with itself"),
        (("--output-format=json:",), "names no file"),
        (("--output-format=",), "'' is not an output format"),
        (("--output-format=gitlb",), "Did you mean `gitlab`"),
        (("--output-format=json:a.json,gitlab:./a.json",), "two reports cannot go to one file"),
        (("--output-format=json:a.json,gitlab:sub/../a.json",), "two reports cannot go to one file"),
        (("--output-format=json,concise", "-o", "x"), "`json` and `concise` cannot share one"),
        (("--output-format=json:a.json", "-o", "x"), "each format has its own"),
        (("-o", "no/such/place"), "there is no folder no/such"),
        (("--output-format=json:no/x",), "there is no folder no"),
        (("-o", "sub"), "it is a folder"),
        (("--statistics", "--output-format=github"), "--statistics has no form for `github`"),
        (("--diff", "--output-format=concise,json:x"), "--diff makes no report"),
        (("--fix-only", "--output-format=concise,json:x"), "--fix-only makes no report"),
    ],
)
def test_what_cannot_be_had_is_said_before_the_run(
    run: Run, project: Path, arguments: tuple[str, ...], message: str
) -> None:
    (project / "sub").mkdir()
    code, out, err = run(*arguments, "a.py")
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
    assert (project / "a.py").read_text() == LEAK
    assert sorted(path.name for path in project.iterdir()) == [".torchmemlint.toml", "a.py", "sub"]


def test_an_old_report_stays_where_the_new_one_cannot_be_written(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "report.json").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, out, err = run("--output-format=json:report.json", "a.py")
    assert (code, out) == (2, "")
    assert "report.json: cannot be written: No space left on device" in err
    assert (project / "report.json").read_text() == "old"
    assert sorted(path.name for path in project.iterdir()) == [".torchmemlint.toml", "a.py", "report.json"]


def test_a_report_may_go_into_a_pipe(run: Run, project: Path) -> None:
    os.mkfifo(project / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((project / "pipe").read_text()), daemon=True)
    reader.start()
    assert run("--output-format=json:pipe", "a.py").code == 1
    reader.join(10)
    assert json.loads(read[0])[0]["code"] == "TML101"
    assert (project / "pipe").is_fifo()


def test_what_comes_by_standard_input_may_go_to_a_file(run: Run, project: Path) -> None:
    assert run("-", "--output-format=json:found.json", stdin=LEAK.encode()).out == ""
    assert json.loads((project / "found.json").read_text())[0]["code"] == "TML101"
    fixed = run("-", "--fix", "--output-format=json:found.json", stdin=LEAK.encode())
    assert (fixed.out, fixed.err) == ("import torch\nmended\n", "")
    assert (project / "found.json").read_text() == "[]\n"


def test_a_diff_may_go_to_a_file(run: Run, project: Path) -> None:
    assert run("--diff", "-o", "a.diff", "a.py").out == ""
    assert (project / "a.diff").read_text().startswith("--- a.py\n+++ a.py\n")


@pytest.mark.parametrize("output_format", FORMATS)
def test_who_reads_no_further_is_left_alone(project: Path, output_format: str) -> None:
    """Enough findings that the pipe is full before all of them are written."""
    (project / "many.py").write_text("import torch\n" + "with torch.no_grad:\n    pass\n" * 1200)
    command = [sys.executable, "-P", "-m", "torchmemlint", "many.py", "--output-format", output_format, "--no-fold"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(60) == 1  # click's own answer
    assert process.stderr.read() == b""
    process.stderr.close()
