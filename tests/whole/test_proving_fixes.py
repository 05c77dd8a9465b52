"""`--fix --prove`: of ten unsafe fixes one makes the project's own test fail. Nine are made, and the one is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

NAMES = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()
HARMFUL = "eta"  # what it gives has to have a graph, as only the test shows, which the linter does not read

FUNCTION = """
def {name}(net, data, opt):
    {name}_total = 0.0
    for x in data:
        {name}_loss = net(x).mean()
        opt.zero_grad()
        {name}_loss.backward()
        opt.step()
        {name}_total += {name}_loss
    return {name}_total
"""
TEST = """
import torch
import losses

for name in {names}:
    net = torch.nn.Linear(2, 1)
    total = getattr(losses, name)(net, [torch.ones(1, 2)] * 3, torch.optim.SGD(net.parameters(), lr=0.1))
    if name == "{harmful}" and not total.requires_grad:
        print(f"FAILED test_of_{{name}}: it has no graph")
        raise SystemExit(3)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.torchmemlint]\n")
    (tmp_path / "losses.py").write_text("import torch\n" + "\n".join(FUNCTION.format(name=name) for name in NAMES))
    (tmp_path / "try_it").write_text(TEST.format(names=NAMES, harmful=HARMFUL))
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchmemlint", "check", "losses.py", "--unsafe-fixes", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True)


@pytest.mark.slow
def test_nine_are_kept_and_the_one_is_named(project: Path) -> None:
    before = (project / "losses.py").read_text()
    done = run(project, "--fix", "--prove", f"{sys.executable} try_it")
    after = (project / "losses.py").read_text()
    for name in NAMES:
        is_fixed = f"{name}_total += {name}_loss.detach()" in after
        assert is_fixed is (name != HARMFUL), done.stderr
    assert after.count(".detach()") == 9
    row = before[: before.index(f" {HARMFUL}_total += ")].count("\n") + 1
    named = [line for line in done.stdout.splitlines() if line.startswith("Not fixed")]
    assert len(named) == 1
    assert f"losses.py:{row}:" in named[0]
    assert f"the command fails with it: FAILED test_of_{HARMFUL}: it has no graph" in named[0]
    assert "9 of 10 fixes are kept" in done.stderr
    assert "[-]" not in done.stdout.replace("[-] marks", "")  # what was refused is not said to be fixable
    again = run(project, "--fix", "--prove", f"{sys.executable} try_it")
    assert (project / "losses.py").read_text() == after
    assert "0 of 1 fixes are kept" in again.stderr


def test_all_are_kept_in_one_run_where_none_does_harm(project: Path) -> None:
    done = run(project, "--diff", "--prove", f'{sys.executable} -c "import losses"')
    assert "10 of 10 fixes are kept, after 2 runs of the command" in done.stderr
    assert done.stdout.count("+") > 10
    assert ".detach()" not in (project / "losses.py").read_text()


def test_a_command_that_fails_without_fixes_proves_nothing(project: Path) -> None:
    before = (project / "losses.py").read_text()
    done = run(project, "--fix", "--prove", f'{sys.executable} -c "raise SystemExit(4)"')
    assert done.returncode == 2
    assert "it fails without any fix: it printed nothing (exit code 4)" in done.stderr
    assert (project / "losses.py").read_text() == before


@pytest.mark.parametrize("arguments", [[], ["--add-ignores"]])
def test_it_belongs_to_fixes(project: Path, arguments: list[str]) -> None:
    done = run(project, *arguments, "--prove", "true")
    assert done.returncode == 2
    assert "--prove belongs to --fix or --diff" in done.stderr
