"""The linter as a user has it: built, and installed with nothing but what it declares."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BASE = {"click", "libcst", "pathspec", "platformdirs", "rich"}
NOT_INSTALLED = ("torch", "numpy", "pytest", "hypothesis")


def test_few_things_are_needed() -> None:
    required = [text for text in distribution("torchmemlint").requires or () if "extra ==" not in text]
    names = {text.partition(">")[0].strip() for text in required if "python_version" not in text}
    assert names == BASE


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a fresh environment; pip takes packages from its cache where it can."""
    folder = tmp_path_factory.mktemp("base")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    done = subprocess.run([*pip, str(ROOT)], capture_output=True, text=True, check=False)
    if done.returncode and ("No matching distribution" in done.stderr or "connection" in done.stderr.lower()):
        pytest.skip("packages cannot be downloaded here")
    assert done.returncode == 0, done.stderr
    return programs


def run(environment: Path, *command: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(environment / command[0]), *command[1:]],
        capture_output=True,
        text=True,
        cwd=environment.parent,
        env=variables,
        check=False,
    )


@pytest.mark.slow
def test_nothing_else_is_there(environment: Path) -> None:
    for name in NOT_INSTALLED:
        assert run(environment, "python", "-c", f"import {name}").returncode != 0


@pytest.mark.slow
def test_version_and_rule(environment: Path) -> None:
    assert run(environment, "torchmemlint", "--version").stdout.startswith("torchmemlint ")
    assert run(environment, "torchmemlint", "rule", "TML101").stdout.startswith("# graph-accumulation (TML101)")
    assert run(environment, "torchmemlint", "config").returncode == 0


@pytest.mark.slow
def test_check_finds_what_the_tests_find(environment: Path) -> None:
    some = sorted(map(str, (ROOT / "fixtures").glob("TML?01-*")))  # of each family
    arguments = ("check", "--isolated", "--output-format=json", *some)
    done = run(environment, "torchmemlint", *arguments)
    assert (done.returncode, done.stderr) == (1, "")
    here = [sys.executable, "-m", "torchmemlint", *arguments]
    # From the same folder: it is the project where files have none of their own, and is searched for callers.
    there = environment.parent
    expected = subprocess.run(
        here, capture_output=True, check=False, cwd=there, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert json.loads(done.stdout) == json.loads(expected.stdout)


@pytest.mark.slow
def test_all_formats_but_the_page_need_nothing_else(environment: Path) -> None:
    from torchmemlint.report.formats import FORMATS

    targets = [f"{name}:report.{name}" for name, one in FORMATS.items() if not one.needs]
    check = ("torchmemlint", "check", "--isolated", str(ROOT / "fixtures" / "TML202-no-op-grad-mode"))
    done = run(environment, *check, "--output-format", ",".join(targets))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert all((environment.parent / f"report.{name}").stat().st_size for name in FORMATS if name != "html")
    refused = run(environment, *check, "--output-format", "html:report.html")
    assert refused.returncode == 2
    assert "pip install 'torchmemlint[html]'" in refused.stderr
    assert not (environment.parent / "report.html").exists()


@pytest.mark.slow
def test_the_package_is_typed(environment: Path) -> None:
    script = "import torchmemlint, pathlib; print(pathlib.Path(torchmemlint.__file__).with_name('py.typed').exists())"
    assert run(environment, "python", "-c", script).stdout.strip() == "True"
