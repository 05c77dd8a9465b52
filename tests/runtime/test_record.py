"""Snapshots that are written when memory runs out: by the context manager on a simulated GPU, and by `run`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from tests.runtime.schemas import OOM, validate  # noqa: E402
from torchmemlint import post_mortem  # noqa: E402
from torchmemlint.cli.main import main  # noqa: E402
from torchmemlint.runtime import internals, record  # noqa: E402
from torchmemlint.runtime.simulated.backend import Simulated  # noqa: E402
from torchmemlint.snapshot.reader import read_snapshot  # noqa: E402

PROGRAM = """\
import sys

import torch


def work(batch):
    kept = []
    while True:
        kept.append(torch.ones(batch, 1 << 20, device="cuda"))


print("arguments", sys.argv[1:])
torch.cuda.set_per_process_memory_fraction(0.002)
if len(sys.argv) > 1:
    sys.exit(int(sys.argv[1]))
work(4)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv(post_mortem.VARIABLE, raising=False)
    (tmp_path / "work.py").write_text(PROGRAM)
    return tmp_path


def test_a_failure_that_is_caught_is_recorded(program: Path) -> None:
    with Simulated().running():
        with record.recording("seen.pickle") as made:
            assert made.on
            torch.cuda.set_per_process_memory_fraction(0.001)
            for _ in range(5):
                with pytest.raises(torch.cuda.OutOfMemoryError):
                    torch.empty(1 << 28, device="cuda")
        assert made.written == 3
        before = made.file.read_bytes()
        with pytest.raises(torch.cuda.OutOfMemoryError):
            torch.empty(1 << 28, device="cuda")
    assert made.file.read_bytes() == before
    assert made.problem is None
    assert len([free for events in read_snapshot(made.file).traces.values() for free in events.free]) == 3


def test_a_file_that_cannot_be_written_does_not_hide_the_error(program: Path) -> None:
    with Simulated().running(), record.recording("nowhere/seen.pickle") as made:
        torch.cuda.set_per_process_memory_fraction(0.001)
        with pytest.raises(torch.cuda.OutOfMemoryError):
            torch.empty(1 << 28, device="cuda")
    assert made.written == 0
    assert "nowhere" in str(made.problem)


def test_a_file_for_each_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert record.file_of_rank(Path("out/a.pickle")) == Path("out/a-rank3.pickle")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert record.file_of_rank(Path("out/a.pickle")) == Path("out/a.pickle")


@pytest.mark.parametrize("report", ["report.html", "report.json", "report.txt"])
def test_run_explains_it(program: Path, capsys: pytest.CaptureFixture[str], report: str) -> None:
    with Simulated().running():
        assert main(["run", "--oom-report", report, "work.py"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "arguments []\n"
    assert "OutOfMemoryError: CUDA out of memory" in shown.err
    assert "out of memory  work.py:9 in work" in shown.err
    assert "in oom_snapshot.pickle." in shown.err
    text = (program / report).read_text()
    if report == "report.json":
        values = json.loads(text)
        validate(values, OOM)
        assert values["devices"][0]["failures"][0]["site"]["line"] == 9
        assert values["checked"] == 2  # and this file, which is among the callers here
    else:
        assert "work.py:9" in text


@pytest.mark.parametrize("report", ["nowhere/report.html", "nowhere/report.json", "folder.txt"])
def test_a_report_that_cannot_be_written(program: Path, capsys: pytest.CaptureFixture[str], report: str) -> None:
    (program / "folder").write_text("")
    with Simulated().running():
        assert main(["run", "--oom-report", report.replace("folder.txt", "folder/a.txt"), "work.py"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "arguments []\n"
    assert "out of memory  work.py:9 in work" in shown.err
    assert f"warning: {report.replace('folder.txt', 'folder/a.txt')}: cannot be written: " in shown.err
    assert "internal" not in shown.err


def test_the_variable_alone_records(
    program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[Callable[[], None]] = []
    monkeypatch.setattr("atexit.register", ends.append)
    post_mortem.begin()
    assert not ends
    monkeypatch.setenv(post_mortem.VARIABLE, "report.json")
    with Simulated().running():
        post_mortem.begin()
        torch.cuda.set_per_process_memory_fraction(0.001)
        with pytest.raises(torch.cuda.OutOfMemoryError):
            torch.empty(1 << 28, device="cuda")
    (end,) = ends
    end()
    assert "test_record.py" in capsys.readouterr().err
    values = json.loads((program / "report.json").read_text())
    validate(values, OOM)
    assert values["devices"][0]["failures"][0]["requested"] == 1 << 30


def test_run_gives_the_programs_own_exit_code(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Simulated().running():
        assert main(["run", "work.py", "7", "--flag"]) == 7
    assert capsys.readouterr().out == "arguments ['7', '--flag']\n"
    assert not (program / "oom_snapshot.pickle").exists()


def test_run_without_a_gpu(program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (program / "plain.py").write_text("print('done')\n")
    assert main(["run", "plain.py"]) == 0
    told = capsys.readouterr()
    assert told.out == "done\n"
    assert "nothing is recorded" in told.err
    assert main(["run", "nowhere.py"]) == 2


def test_a_torch_without_observers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        pass

    monkeypatch.setattr(internals, "_C", Nothing())
    seen: list[Any] = []
    assert not internals.on_out_of_memory(lambda *what: seen.append(what))
