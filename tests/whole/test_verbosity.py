"""What `--verbose` says of the files parsed for context: how many, and what led to each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from torchmemlint.cli.main import main

Told = Callable[..., list[str]]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Told:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> list[str]:
        capfd.readouterr()
        main(("check", "--isolated", "--no-cache", "--exit-zero", *arguments))
        return capfd.readouterr().err.splitlines()

    return run


def test_files_and_reasons(told: Told, tmp_path: Path) -> None:
    bases = "".join(f"from m{n} import Base{n}\n" for n in range(12))
    named = ", ".join(f"Base{n}" for n in range(12))
    train = f"import torch\n{bases}\nclass Net({named}):\n    pass\n\ndef step(loss):\n    loss.backward()\n"
    (tmp_path / "train.py").write_text(train + "    Net(loss)\n")
    for number in range(12):
        (tmp_path / f"m{number}.py").write_text(f"class Base{number}:\n    pass\n")
    (tmp_path / "unrelated.py").write_text("class Other:\n    pass\n")
    lines = told("-v", "train.py")
    assert lines[0].startswith("notice: checked 1 file, 0 more never mention torch, in ")
    assert lines[1] == "notice: parsed 12 other files for context: 12 with base classes"
    assert lines[2] == "notice:   m0.py: base class `m0.Base0` in train.py"
    assert lines[-1] == "notice:   and 2 more (-vv names all)"
    assert len(lines) == 2 + 10 + 1
    lines = told("-vv", "--output-format=json", "train.py")
    assert sorted(line.split()[1] for line in lines[2:]) == sorted(f"m{n}.py:" for n in range(12))
    assert told("-v", ".")[1] == "notice: parsed no other files for context"  # all are checked themselves


def test_imports_are_told_from_base_classes(told: Told, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("def scale(x):\n    return x * 2\n")
    (tmp_path / "train.py").write_text(
        "import torch\nfrom tools import scale\n\ndef step(loss):\n    scale(loss).backward()\n"
    )
    assert told("-v", "train.py")[1:] == [
        "notice: parsed 1 other file for context: 1 imported",
        "notice:   tools.py: `tools.scale` imported by train.py",
    ]
