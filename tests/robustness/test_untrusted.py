"""A tree that nobody trusts: nothing of it runs, and its configuration reaches nothing outside of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.robustness.conftest import LEAK, Launch, Run
from torchmemlint.config.errors import ConfigError
from torchmemlint.config.resolver import Resolver

PLANTED = (
    "torch", "conftest", "sitecustomize", "usercustomize", "libcst", "click", "pathspec", "platformdirs", "rich", "ast",
    "tomli", "sqlite3", "multiprocessing/__init__", "json/__init__", "resource", "tokenize", "difflib", "rules_of_ours",
    "setup", "a_plugin", "model", "jinja2", "importlib_metadata", "fcntl", "tempfile", "bisect", "hashlib",
)  # fmt: skip
SCRIPT = "import sys\nfrom torchmemlint.cli.main import main\nsys.exit(main())\n"
METER = "class Meter:\n    def __init__(self):\n        self.kept = []\n\n    def update(self, value):\n"
KEEPS = METER + "        self.kept.append(value)\n"


@pytest.mark.parametrize("how", ["-m", "script"])
def test_nothing_of_the_tree_runs(project: Path, launch: Launch, how: str) -> None:
    trace = project.parent / "ran"
    for name in PLANTED:
        (project / f"{name}.py").parent.mkdir(exist_ok=True)
        (project / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write('{name} ')\n")
    (project / "a.py").write_text(LEAK.replace("import torch\n", "import torch, model\nfrom a_plugin import *\n"))
    (project / "x.pth").write_text(f"import os; open({str(trace)!r}, 'w')\n")
    (project / "pyproject.toml").write_text("[build-system]\nrequires = []\nbuild-backend = 'setup'\n")
    script = project.parent / "bin" / "torchmemlint"  # as pip makes it
    script.parent.mkdir()
    script.write_text(SCRIPT)
    program = () if how == "-m" else (sys.executable, str(script))
    done = launch("--select=ALL", "--fix", "--diff", "--unsafe-fixes", program=program)
    assert not trace.exists(), trace.read_text()
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "+        total += loss.detach()" in done.stdout


# -- what a configuration may name -------------------------------------------------------------------------------------


def refused(folder: Path, table: str) -> str:
    (folder / "torchmemlint.toml").write_text(table)
    with pytest.raises(ConfigError) as error:
        Resolver(folder).settings_for(folder)
    return str(error.value)


@pytest.mark.parametrize("key", ["baseline", "measurements", "cache-dir"])
@pytest.mark.parametrize("place", ["../{0}", "{1}/{0}", "~/{0}", "link/{0}", "x/../../{0}"])
def test_what_it_names_is_within_its_folder(project: Path, key: str, place: str) -> None:
    (project / "link").symlink_to(project.parent)
    message = refused(project, f"{key} = {place.format('kept', project.parent)!r}\n")
    assert f"`{key}` leads out of {project}" in message
    (project / "torchmemlint.toml").write_text(f"{key} = 'x/kept'\n")
    settings = Resolver(project).settings_for(project)
    assert getattr(settings, key.replace("-", "_")) == project / "x" / "kept"


@pytest.mark.parametrize("name", ["torchmemlint-baseline.json", "torchmemlint-measured.json"])
def test_the_names_by_default_are_no_way_out_either(project: Path, name: str) -> None:
    (project / name).symlink_to(project.parent / "victim.json")
    assert "leads out of" in refused(project, "")
    (project / name).unlink()
    (project / "ci").mkdir()
    (project / name).symlink_to(Path("ci") / name)
    Resolver(project).settings_for(project)


def test_who_runs_it_may_name_any_place(project: Path, run: Run) -> None:
    assert run("baseline", "create", "--baseline", "../kept.json").returncode == 0
    assert run("--baseline", "../kept.json").returncode == 0
    assert (project.parent / "kept.json").exists()


@pytest.mark.parametrize("word", ["./rules.py", "../rules", "/tmp/rules.py", "rules", "torchmemlint.cli.main"])
def test_it_names_no_code_of_the_tree(project: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    trace = project.parent / "ran"
    (project / "rules.py").write_text(f"'''torchmemlint'''\nopen({str(trace)!r}, 'w')\n")
    monkeypatch.chdir(project)
    assert "`plugins`" in refused(project, f"plugins = [{word!r}]\n")
    assert not trace.exists()


# -- what lies elsewhere -----------------------------------------------------------------------------------------------


def test_links_out_of_the_project_are_passed_over(project: Path, run: Run) -> None:
    """Neither shown nor mended."""
    secret = project.parent / "secret.py"
    secret.write_text(LEAK)
    (project / "out.py").symlink_to(secret)
    (project / "within.py").symlink_to("a.py")
    done = run("--fix")
    assert secret.read_text() == LEAK
    assert f"{project / 'out.py'}: a link that leads out of the project: passed over" in done.stderr
    assert done.returncode == 0
    assert "out.py:9:9: TML101" in run("out.py").stdout  # who names it wants it


@pytest.mark.parametrize("module", ["..helpers", "linked"])
def test_imports_lead_to_nothing_outside(project: Path, run: Run, module: str) -> None:
    outside = project.parent / "helpers.py"
    outside.write_text(KEEPS)
    (project / "linked.py").symlink_to(outside)
    text = LEAK.replace("total += loss", "meter.update(loss)").replace("total = 0.0", "meter = Meter()")
    (project / "a.py").write_text(text.replace("import torch\n", f"import torch\nfrom {module} import Meter\n"))
    assert "TML102" not in run("a.py").stdout
    (project / "linked.py").unlink()
    (project / "linked.py").write_text(KEEPS)
    (project / "a.py").write_text((project / "a.py").read_text().replace(module, "linked"))
    assert "TML102" in run("a.py").stdout  # so there was something to be seen


def test_git_runs_no_monitor_of_the_repository(project: Path, run: Run) -> None:
    trace = project.parent / "ran"
    monitor = project / "monitor.sh"
    monitor.write_text(f"#!/bin/sh\ntouch {trace}\n")
    monitor.chmod(0o755)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(project)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["config", "core.fsmonitor", str(monitor)]):
        subprocess.run([*git, *arguments], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    assert run("--new-since=HEAD").returncode == 0
    assert not trace.exists()
    subprocess.run([*git, "diff", "HEAD"], check=True, capture_output=True)
    assert trace.exists()  # which git would have run by itself
