"""What `--verbose` says of the other files that are read for context: how many, and which imports which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from torchmemlint.cli.main import main
from torchmemlint.flow.fact import judgement

Told = Callable[..., list[str]]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Told:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> list[str]:
        capfd.readouterr()
        main(("check", "--isolated", "--no-cache", "--exit-zero", *arguments))
        return capfd.readouterr().err.splitlines()

    return run


STEP = "\ndef step(net, x, optimizer):\n    loss = net(x).mean()\n    loss.backward()\n    optimizer.step()\n"


def test_files_and_reasons(told: Told, tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(12)]
    imports = "".join(f"from {name} import scale_{name}\n" for name in names)
    calls = "".join(f"    x = scale_{name}(x)\n" for name in names)
    train = f"import torch\n{imports}{STEP}"
    (tmp_path / "train.py").write_text(train.replace("    loss = net(x)", f"{calls}    loss = net(x)"))
    for name in names:
        (tmp_path / f"{name}.py").write_text(f"def scale_{name}(x):\n    return x * 2\n")
    (tmp_path / "unrelated.py").write_text("class Other:\n    pass\n")
    lines = told("-v", "train.py")
    assert lines[0].startswith("notice: checked 1 file, 0 more never mention torch, in ")
    assert lines[1] == "notice: read 12 other files for context: 12 imported by these"
    assert lines[2] == "notice:   m0.py: imported by train.py"
    assert lines[-1] == "notice:   and 2 more (-vv names all)"
    assert len(lines) == 2 + 10 + 1
    lines = told("-vv", "--output-format=json", "train.py")
    assert sorted(line.split()[1] for line in lines[2:]) == sorted(f"{name}.py:" for name in names)
    (tmp_path / "m0.py").write_text("import torch\n")
    assert told("-v", "train.py", *(f"{name}.py" for name in names))[1] == "notice: read no other files for context"


def test_files_that_import_one(told: Told, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(f"import torch\n{STEP}")
    (tmp_path / "train.py").write_text("import tools\nimport torch\n\ntools.step(torch.nn.Linear(2, 2), 1, 2)\n")
    assert told("-v", "tools.py")[1:] == [
        "notice: read 1 other file for context: 1 that import them",
        "notice:   train.py: imports tools.py",
    ]


def test_files_that_were_followed_in_part(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(f"import torch\n{STEP}")
    assert len(told("-v", "train.py")) == 2
    monkeypatch.setattr(judgement, "_LEAST_WORK", 0)
    monkeypatch.setattr(judgement, "_BYTES_OF_WORK", 1000)
    assert told("-v", "train.py")[1:3] == [
        "notice: followed only a part of 1 file, as more would have taken too long",
        "notice:   train.py",
    ]
    main(("check", "--isolated", "--no-cache", "train.py"))
    assert capfd.readouterr().out.splitlines() == [
        "All checks passed!",
        "1 file had more code than could be followed: there may be more to find (-v names it).",
    ]
