from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import torchmemlint
from torchmemlint.cli.main import main

PACKAGE = Path(torchmemlint.__file__).parent.parent
LEAK = """\
import torch


def train(model, loader):
    total = 0.0
    for x in loader:
        loss = model(x)
        loss.backward()
        total += loss
    return total
"""
MENDED = LEAK.replace("+= loss", "+= loss.detach()")

Run = Callable[..., "Outcome"]
Launch = Callable[..., "subprocess.CompletedProcess[str]"]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "torchmemlint", *arguments]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    # On a full disk Python would leave bytecode behind that is cut off, for all later runs.
    own = {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "TORCHMEMLINT_OUTPUT_FORMAT": "concise"}
    return {**kept, **own, **more}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a configuration and one file that something is found in."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "torchmemlint.toml").write_text("")
    (root / "a.py").write_text(LEAK)
    return root


class Outcome(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """The program in this process, in the project's folder."""

    def call(*arguments: str) -> Outcome:
        capfd.readouterr()
        code = main(arguments)
        return Outcome(code, *capfd.readouterr())

    monkeypatch.chdir(project)
    monkeypatch.setenv("TORCHMEMLINT_OUTPUT_FORMAT", "concise")
    return call


@pytest.fixture
def launch(project: Path) -> Launch:
    """The real program, in a process of its own."""

    def call(*arguments: str, program: Sequence[str] = (), **options: Any) -> subprocess.CompletedProcess[str]:
        given = {"cwd": project, "env": environment(), "capture_output": True, "text": True, "timeout": 300, **options}
        return subprocess.run([*program, *arguments] if program else command(*arguments), check=False, **given)

    return call
