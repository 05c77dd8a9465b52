"""The hooks as pre-commit runs them: installed from a repository into an environment of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGED = ("torchmemlint", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")

BAD = """\
import torch
from torch import nn


def train(loader, optimizer):
    model = nn.Linear(8, 1)
    total = 0.0
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""
GOOD = BAD.replace("total += loss", "total += loss.item()")
FIXED = BAD.replace("total += loss", "total += loss.detach()")


def environment(home: Path) -> dict[str, str]:
    who = {"NAME": "A Tester", "EMAIL": "tester@example.org"}
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))},
        **{f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PRE_COMMIT_HOME": str(home),
        "PRE_COMMIT_COLOR": "never",
    }


def git(folder: Path, variables: dict[str, str], *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit_everything(folder: Path, variables: dict[str, str]) -> str:
    """Make a repository of a folder; its commit."""
    git(folder, variables, "init", "--quiet", "--initial-branch=main")
    git(folder, variables, "add", "--all")
    git(folder, variables, "commit", "--quiet", "--message=All")
    return git(folder, variables, "rev-parse", "HEAD")


@pytest.mark.skipif(shutil.which("git") is None, reason="pre-commit needs git")
def test_both_hooks_on_a_project(tmp_path: Path) -> None:
    variables = environment(tmp_path / "home")
    ours = tmp_path / "torchmemlint"
    ours.mkdir()
    for name in PACKAGED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, ours / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, ours / name)
    revision = commit_everything(ours, variables)

    project = tmp_path / "project"
    (project / "vendored").mkdir(parents=True)
    (project / "bad.py").write_text(BAD)
    (project / "good.py").write_text(GOOD)
    (project / "vendored" / "bad.py").write_text(BAD)
    (project / "pyproject.toml").write_text('[tool.torchmemlint]\nexclude = ["vendored/"]\n')
    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {ours}\n  rev: {revision}\n  hooks:\n  - id: torchmemlint\n  - id: torchmemlint-fix\n"
    )
    commit_everything(project, variables)

    def hook(name: str, *files: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pre_commit", "run", name, "--files", *files]
        done = subprocess.run(command, cwd=project, env=variables, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    status, output = hook("torchmemlint", "good.py", "vendored/bad.py")
    assert status == 0, output
    assert "Passed" in output

    status, output = hook("torchmemlint", "good.py", "bad.py")
    assert status == 1, output
    assert "Failed" in output
    assert "TML101 [*] graph-accumulation" in output
    assert "bad.py:13:9" in output
    assert "files were modified" not in output

    status, output = hook("torchmemlint-fix", "good.py", "bad.py", "vendored/bad.py")
    assert status == 1, output
    assert "files were modified by this hook" in output
    assert (project / "bad.py").read_text() == FIXED
    assert (project / "good.py").read_text() == GOOD
    assert (project / "vendored" / "bad.py").read_text() == BAD

    for name in ("torchmemlint", "torchmemlint-fix"):
        status, output = hook(name, "good.py", "bad.py")
        assert status == 0, output
