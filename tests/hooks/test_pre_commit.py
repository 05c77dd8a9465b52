"""The hooks as pre-commit runs them: installed from a repository into an environment of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
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


pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="pre-commit needs git")


@dataclass(frozen=True)
class Hooks:
    """A repository with the hooks; pre-commit installs it once for all tests."""

    repository: Path
    revision: str
    variables: dict[str, str]

    def configuration(self, hooks: str) -> str:
        return f"repos:\n- repo: {self.repository}\n  rev: {self.revision}\n  hooks:\n{hooks}"

    def run(self, project: Path, *words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pre_commit", *words]
        done = subprocess.run(command, cwd=project, env=self.variables, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Hooks:
    folder = tmp_path_factory.mktemp("hooks")
    variables = environment(folder / "home")
    ours = folder / "torchmemlint"
    ours.mkdir()
    for name in PACKAGED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, ours / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, ours / name)
    return Hooks(ours, commit_everything(ours, variables), variables)


@pytest.mark.slow
def test_both_hooks_on_a_project(tmp_path: Path, hooks: Hooks) -> None:
    project = tmp_path / "project"
    (project / "vendored").mkdir(parents=True)
    (project / "bad.py").write_text(BAD)
    (project / "good.py").write_text(GOOD)
    (project / "vendored" / "bad.py").write_text(BAD)
    (project / "pyproject.toml").write_text('[tool.torchmemlint]\nexclude = ["vendored/"]\n')
    configuration = hooks.configuration("  - id: torchmemlint\n  - id: torchmemlint-fix\n")
    (project / ".pre-commit-config.yaml").write_text(configuration)
    commit_everything(project, hooks.variables)

    def hook(name: str, *files: str) -> tuple[int, str]:
        return hooks.run(project, "run", name, "--files", *files)

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


PAGE = (REPOSITORY / "docs" / "pre-commit.md").read_text(encoding="utf-8")
EXAMPLES = [textwrap.dedent(block) for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)]


def test_the_examples_of_the_page_are_configurations(tmp_path: Path, hooks: Hooks) -> None:
    whole, other_hook, of_the_service = EXAMPLES
    replaced = whole.replace("<URL of this repository>", str(hooks.repository)).replace("<tag or commit>", "v1.0.0")
    (tmp_path / "a.yaml").write_text(f"{of_the_service}{replaced}")
    assert hooks.run(tmp_path, "validate-config", "a.yaml") == (0, "")
    (tmp_path / "b.yaml").write_text(hooks.configuration(textwrap.indent(other_hook, "  ")))
    assert hooks.run(tmp_path, "validate-config", "b.yaml") == (0, "")
    (tmp_path / "c.yaml").write_text(replaced.replace("id:", "idd:"))
    assert hooks.run(tmp_path, "validate-config", "c.yaml")[0] == 1


@pytest.mark.slow
def test_arguments_of_the_page_reach_the_linter(tmp_path: Path, hooks: Hooks) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    hook = textwrap.indent(EXAMPLES[1], "  ")
    (tmp_path / ".pre-commit-config.yaml").write_text(hooks.configuration(hook))
    commit_everything(tmp_path, hooks.variables)
    status, output = hooks.run(tmp_path, "run", "--all-files")
    assert status == 1, output
    assert (tmp_path / "bad.py").read_text() == FIXED
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / ".pre-commit-config.yaml").write_text(hooks.configuration(hook.replace("TML1,TML2", "TML5")))
    status, output = hooks.run(tmp_path, "run", "--all-files")
    assert status == 0, output
    assert (tmp_path / "bad.py").read_text() == BAD


@pytest.mark.slow
def test_the_hook_is_tried_without_a_configuration(tmp_path: Path, hooks: Hooks) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "good.py").write_text(GOOD)
    commit_everything(tmp_path, hooks.variables)
    status, output = hooks.run(tmp_path, "try-repo", str(hooks.repository), "torchmemlint", "--all-files")
    assert status == 1, output
    assert "bad.py:13:9" in output
    assert "good.py" not in output
