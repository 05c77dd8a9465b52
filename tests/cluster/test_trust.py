"""Whom a run on a cluster trusts: what of a tree travels, and what a worker may be made to do with it.

`docs/cluster.md` says it. Nothing here needs a cluster: a worker gets the bytes that are packed here.
"""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.leaking import LEAK
from torchmemlint.engine.cluster import child, remote, sources
from torchmemlint.engine.cluster.sources import Sources, TooLargeError, gather

PACKAGE = Path(sources.__file__).parent
SECRET = "SECRET = 'of somebody else'\n"
RUNS = "open({trace!r}, 'a').write(__file__)\n"
PLANTED = ("torch", "sitecustomize", "usercustomize", "libcst", "pickle", "json", "conftest", "model", "torchmemlint")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A hostile project beside somebody's files."""
    (tmp_path / "secret.py").write_text(SECRET)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key.py").write_text(SECRET)
    root = tmp_path.resolve() / "project"
    root.mkdir()
    (root / "a.py").write_text("from model import *\nimport linked, keys.key\n" + LEAK)
    for name in PLANTED:
        (root / f"{name}.py").write_text(RUNS.format(trace=str(tmp_path / "ran")))
    (root / "linked.py").symlink_to("../secret.py")
    (root / "keys").symlink_to("../secrets")
    (root / "loop").symlink_to(".")
    return root


def travelled(root: Path) -> Sources:
    return Sources.unpack(gather(root, [(root / "a.py", (root / "a.py").read_bytes())]).pack())


def test_nothing_outside_of_the_project_travels(root: Path) -> None:
    found = travelled(root)
    assert {Path(name).name for name in found.contents} == {"a.py", *(f"{name}.py" for name in PLANTED)}
    assert SECRET.encode() not in found.contents.values()
    assert all(Path(name).is_relative_to(root) for name in (*found.contents, *found.listings))


def test_a_worker_reads_nothing_from_its_own_disk(root: Path) -> None:
    files = travelled(root).files()
    (root / "later.py").write_text("x = 1\n")  # as on the disk of a worker, where something else lies
    (root / "model.py").write_text("changed = 1\n")
    for path in (root / "later.py", root.parent / "secret.py", root / ".." / "secret.py", Path("/etc/passwd")):
        assert files.text(path) is None
    assert "open(" in (files.text(root / "model.py") or "")
    assert "later.py" not in files.finder.names_in(str(root))


def test_a_worker_runs_nothing_and_writes_nothing(root: Path) -> None:
    """Not even where it is started in the tree itself."""
    before = sorted(root.rglob("*"))
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from torchmemlint.engine.cluster.sources import Sources\n"
        "from torchmemlint.engine.one_file import Profile, report_of\n"
        "def watch(event, given):\n"
        "    if event == 'open' and isinstance(given[1], str) and set(given[1]) & set('wax+'):\n"
        "        raise SystemExit(f'writes {given[0]}')\n"
        "    if event in ('exec', 'compile') and event == 'exec' and '/project/' in given[0].co_filename:\n"
        "        raise SystemExit('runs ' + given[0].co_filename)\n"
        "files = Sources.unpack(sys.stdin.buffer.read()).files()\n"
        "sys.addaudithook(watch)\n"
        f"path = Path({str(root / 'a.py')!r})\n"
        "print(report_of(files.text(path), path, Profile(frozenset({'TML101'}))).findings[0].code)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}
    packed = gather(root, [(root / "a.py", (root / "a.py").read_bytes())]).pack()
    done = subprocess.run(
        [sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", "-c", script],
        input=packed, cwd=root, env=environment, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, [b"TML101"]), done.stderr
    assert not (root.parent / "ran").exists()
    assert sorted(root.rglob("*")) == before


def test_a_project_that_is_too_large_stays_here(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_BYTES", 100)
    with pytest.raises(TooLargeError, match="of source below"):
        travelled(root)


@pytest.mark.parametrize("module", [remote, child, sources])
def test_what_a_worker_runs_is_ours_alone(module: ModuleType) -> None:
    """It makes no code of texts, and its one process gets a program that nothing of a tree is put into."""
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Call)]
    names = {ast.unparse(call.func) for call in calls}
    assert names.isdisjoint({"eval", "exec", "compile", "__import__", "os.system", "importlib.import_module"})
    started = [call for call in calls if ast.unparse(call.func).startswith("subprocess.")]
    assert [ast.unparse(call.args[0]) for call in started] in ([], ["[sys.executable, '-c', _START, path]"])
    assert not any(keyword.arg == "shell" for call in started for keyword in call.keywords)
