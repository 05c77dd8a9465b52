"""A plugin package in a fresh environment: installed, it adds a rule, and nothing else was touched."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
PROGRAM = "import torch\n\n\ndef start(on):\n    if on:\n        torch.cuda.memory._record_memory_history()\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With an environment in which torchmemlint is installed, with what its plugins are for, and nothing more."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder / "venv", with_pip=True)
    done = run(folder, "python", "-m", "pip", "install", "--quiet", str(ROOT), "pytest", "flake8", "validate-pyproject")
    if done.returncode and ("No matching distribution" in done.stderr or "connection" in done.stderr.lower()):
        pytest.skip("packages cannot be downloaded here")
    assert done.returncode == 0, done.stderr
    (folder / "a.py").write_text(PROGRAM)
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    unwanted = ("PYTHONPATH", "VIRTUAL_ENV", "TORCHMEMLINT_NO_PLUGINS")
    variables = {name: value for name, value in os.environ.items() if name not in unwanted}
    variables["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    return subprocess.run(
        [str(programs / command[0]), *command[1:]],
        capture_output=True,
        text=True,
        cwd=folder,
        env=variables,
        check=False,
    )


def test_a_plugin_is_made_tested_installed_and_found(folder: Path) -> None:
    before = run(folder, "torchmemlint", "a.py", "--output-format=json", "--isolated")
    assert (before.returncode, json.loads(before.stdout)) == (0, [])

    made = run(folder, "torchmemlint", "new-rule", "ACM101", "unbounded-history")
    assert made.returncode == 0, made.stderr
    installed = run(folder, "python", "-m", "pip", "install", "--quiet", "./torchmemlint-acm")
    assert installed.returncode == 0, installed.stderr

    tested = run(folder, "python", "-m", "pytest", "-q", "torchmemlint-acm")
    assert (tested.returncode, "2 passed" in tested.stdout) == (0, True), tested.stdout

    (finding,) = json.loads(run(folder, "torchmemlint", "a.py", "--output-format=json", "--isolated").stdout)
    assert (finding["code"], finding["location"]) == ("ACM101", {"row": 6, "column": 9})
    page = run(folder, "torchmemlint", "rule", "ACM101")
    assert page.stdout.startswith("# unbounded-history (ACM101)")
    assert run(folder, "torchmemlint", "a.py", "--ignore", "ACM").returncode == 0
    fixed = run(folder, "torchmemlint", "a.py", "--fix", "--unsafe-fixes")
    assert fixed.returncode == 0
    assert (folder / "a.py").read_text() == PROGRAM.replace("history()", "history(max_entries=100_000)")
    (folder / "a.py").write_text(PROGRAM)

    gone = run(folder, "python", "-m", "pip", "uninstall", "--quiet", "--yes", "torchmemlint-acm")
    assert gone.returncode == 0, gone.stderr
    after = run(folder, "torchmemlint", "a.py", "--output-format=json", "--isolated")
    assert (after.returncode, after.stdout) == (before.returncode, before.stdout)
    assert run(folder, "torchmemlint", "a.py", "--select", "ACM").returncode == 2


def test_flake8_finds_its_plugin(folder: Path) -> None:
    leaky = folder / "leaky.py"
    leaky.write_text("import torch\n\nwith torch.no_grad:\n    pass\n")
    assert "torchmemlint:" in run(folder, "flake8", "--version", "--enable-extensions=TML").stdout
    off = run(folder, "flake8", "leaky.py")
    assert (off.returncode, off.stdout) == (0, "")
    on = run(folder, "flake8", "--enable-extensions=TML", "leaky.py")
    assert on.returncode == 1
    assert on.stdout.startswith("leaky.py:3:6: TML202 ")


def test_validate_pyproject_finds_the_schema(folder: Path) -> None:
    project = '[project]\nname = "x"\nversion = "1"\n\n[tool.torchmemlint]\n'
    for name, key, code in (("good.toml", "select", 0), ("bad.toml", "slect", 1)):
        (folder / name).write_text(f'{project}{key} = ["TML1"]\n')
        done = run(folder, "validate-pyproject", name)
        assert done.returncode == code, done.stdout + done.stderr
    assert "tool.torchmemlint" in done.stdout + done.stderr
