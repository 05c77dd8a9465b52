"""`torchmemlint diff` of two commits of a program, and of two snapshots."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("torch")
from torchmemlint.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = """
import torch

kept = []
for step in range(8):
    x = torch.zeros({size}, device="cuda")
    {keep}
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program is in a folder of its own: small in the first commit, larger in the second, and keeps all here."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git("init", "-q", str(tmp_path))
    for size, keep in (("1 << 20", "pass"), ("1 << 21", "pass")):
        (folder / "train.py").write_text(PROGRAM.format(size=size, keep=keep))
        git("add", "-A")
        git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    (folder / "train.py").write_text(PROGRAM.format(size="1 << 20", keep="kept.append(x)"))
    return folder


def git(*arguments: str) -> None:
    subprocess.run(("git", *arguments), check=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})


def compared(capsys: pytest.CaptureFixture[str], commits: str, expected: int) -> dict[str, object]:
    code = main(["diff", "--output-format", "json", "--commits", commits, "--", "--backend", "simulated", "train.py"])
    told = capsys.readouterr()
    assert code == expected, told.err
    values: dict[str, object] = json.loads(told.out)
    return values


def test_two_commits(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = compared(capsys, "HEAD~..HEAD", 1)
    assert values["worse"] == ["peak"]
    (change,) = values["at_peak"]  # type: ignore[misc]
    assert (change["path"], change["after"] - change["before"]) == ("train.py", change["before"])
    assert values["before"]["program"] == "train.py"  # type: ignore[index]
    assert sorted(one.name for one in repository.iterdir()) == ["train.py"]


@pytest.mark.slow
def test_a_commit_and_the_files_here(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = compared(capsys, "HEAD~", 1)
    assert values["worse"] == ["peak", "growth"]


def test_what_cannot_be_measured(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--commits", "nowhere..HEAD", "--", "train.py"]) == 2
    assert "git knows no commit `nowhere`" in capsys.readouterr().err
    assert main(["diff", "--commits", "..", "--", "train.py"]) == 2
    assert "--commits A..B -- SCRIPT" in capsys.readouterr().err
    assert main(["diff", "--commits", "HEAD", "--", "absent.py"]) in (1, 2)
    assert "absent.py: no such file" in capsys.readouterr().err


def test_two_snapshots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = str(EXAMPLES / "out_of_memory.pickle")
    assert main(["diff", one, one, "--output-format", "json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["before"]["out_of_memory"]
    assert values["after"]["peak"] == 398 * (1 << 20) + values["after"]["peak"] % (1 << 20)
    bad = tmp_path / "bad.pickle"
    bad.write_bytes(b"\x80\x04cos\nsystem\n.")
    assert main(["diff", one, str(bad)]) == 2
    assert "could run code" in capsys.readouterr().err
