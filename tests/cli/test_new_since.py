"""`--new-since`: what was not found yet at a revision, in real repositories. (The rules are stand-ins: see `fakes`.)"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from whole.repository import Repository

from .conftest import Run

OLD = """import torch


def first():
    x = LEAK101
    return x


def second():
    x = LEAK101
    y = LEAK102
    return x
"""


@pytest.fixture
def repository(project: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A project under version control with three findings in `a.py`, on `main`; checked out is `work`."""
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    found = Repository(project)
    found.write("a.py", OLD)
    found.commit("old")
    found.git("checkout", "-q", "-b", "work")
    return found


def new(run: Run, *arguments: str, since: str = "main") -> list[tuple[str, int]]:
    done = run(f"--new-since={since}", "--output-format=json", *arguments)
    assert done.err == ""
    return [(Path(one["filename"]).name, one["location"]["row"]) for one in json.loads(done.out)]


def test_nothing_is_new_where_nothing_changed(repository: Repository, run: Run) -> None:
    assert run("--new-since=main") == (0, "No new problems.\nLeft out 3 problems not new since main.\n", "")
    assert new(run, since="HEAD") == []


def test_rows_that_are_added(repository: Repository, run: Run) -> None:
    repository.write("a.py", OLD + "\n\nz = LEAK101\n")
    assert new(run) == [("a.py", 15)]
    repository.commit()
    assert new(run) == [("a.py", 15)]
    assert new(run, since="HEAD") == []
    assert run("--new-since=main").code == 1


def test_files_that_are_new(repository: Repository, run: Run) -> None:
    repository.write("untracked.py", OLD.replace("LEAK101", "LEAK201"))
    repository.write("odd \"name\"\n'é'.py", "import torch\nx = LEAK401\n")
    expected = [("odd \"name\"\n'é'.py", 2), ("untracked.py", 5), ("untracked.py", 10), ("untracked.py", 11)]
    assert new(run) == expected[:1] + expected[1:3] + expected[3:]
    repository.git("add", "-A")
    assert new(run) == expected
    repository.commit()
    assert new(run) == expected
    repository.write("odd \"name\"\n'é'.py", "import torch\nx = LEAK401\ny = LEAK101\n")
    assert new(run, since="HEAD") == [("odd \"name\"\n'é'.py", 3)]


def test_what_is_moved_renamed_or_formatted_is_not_new(repository: Repository, run: Run) -> None:
    head, first, second = OLD.split("\n\n\n")
    repository.write(
        "a.py", f"{head}\n\n\n{second}\n\n{first}\n".replace("x = LEAK101", "x = (\n        LEAK101\n    )")
    )
    assert new(run) == []
    (repository.root / "deep").mkdir()
    repository.git("mv", "a.py", "deep/b.py")
    assert new(run) == []
    repository.commit()
    assert new(run) == []
    repository.write("deep/b.py", f"{head}\n\n\n{second}\n")
    repository.write("c.py", f"{head}\n\n\n{first}\n")
    assert new(run) == []
    repository.write("d.py", f"{head}\n\n\n{first}\n")
    assert len(new(run)) == 1


def test_the_equal_one_that_is_new_is_reported(repository: Repository, run: Run) -> None:
    repository.write("a.py", OLD.replace("def first", "def zeroth():\n    x = LEAK101\n\n\ndef first"))
    assert new(run) == [("a.py", 5)]


def test_a_suppression_that_is_gone_makes_its_finding_new(repository: Repository, run: Run) -> None:
    repository.write("b.py", "import torch\nx = LEAK201  # torchmemlint: ignore[TML201]\n")
    repository.commit()
    repository.write("b.py", "import torch\nx = LEAK201\n")
    assert new(run, since="HEAD") == [("b.py", 2)]


def test_the_merge_base_counts_not_the_tip(repository: Repository, run: Run) -> None:
    repository.write("b.py", "import torch\nx = LEAK101\n")
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.write("a.py", "import torch\n")
    repository.commit("main goes on")
    repository.git("checkout", "-q", "work")
    assert new(run) == [("b.py", 2)]


def test_subfolders_and_other_work_trees(repository: Repository, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write("deep/b.py", "import torch\nx = LEAK101\n")
    repository.commit()
    monkeypatch.chdir(repository.root / "deep")
    assert new(run) == [("b.py", 2)]
    assert new(run, "..") == [("b.py", 2)]
    monkeypatch.chdir(repository.root)
    repository.git("worktree", "add", "-q", "other", "-b", "third")
    (repository.root / "other" / "deep" / "b.py").write_text("import torch\nx = LEAK101\ny = LEAK101\n")
    monkeypatch.chdir(repository.root / "other")
    assert new(run) == [("b.py", 2), ("b.py", 3)]
    assert new(run, since="HEAD") == [("b.py", 3)]


def test_through_a_link(repository: Repository, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write("a.py", OLD + "z = LEAK401\n")
    link = repository.root.parent / f"{repository.root.name}-link"
    link.symlink_to(repository.root)
    monkeypatch.chdir(link)
    assert new(run) == [("a.py", 13)]
    assert new(run, str(link / "a.py")) == [("a.py", 13)]


def test_submodules_are_left_alone(repository: Repository, run: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = Repository(tmp_path_factory.mktemp("other"))
    other.write("lib.py", "import torch\nx = LEAK101\n")
    other.commit()
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.root), "lib")
    repository.write("lib/lib.py", "import torch\nx = LEAK101\ny = LEAK101\n")
    assert new(run) == []


def test_git_is_not_led_astray(repository: Repository, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ("diff.noprefix", "diff.external", "color.ui", "diff.renames", "diff.relative", "core.quotePath")
    for setting, value in zip(settings, ("true", "false", "always", "false", "true", "true"), strict=True):
        repository.git("config", setting, value)
    repository.git("mv", "a.py", "b.py")
    repository.write(".gitattributes", "*.py -diff\n")
    repository.write("deep/c.py", "import torch\nx = LEAK101\n")
    # As in a hook of `git commit -a`.
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/next-index.lock")
    monkeypatch.chdir(repository.root / "deep")
    assert new(run, "..") == [("c.py", 2)]


def test_a_merge_in_progress(repository: Repository, run: Run) -> None:
    repository.write("a.py", OLD.replace("LEAK102", "LEAK201"))
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.write("a.py", OLD.replace("LEAK102", "LEAK301"))
    repository.commit()
    done = subprocess.run(["git", "merge", "work"], cwd=repository.root, capture_output=True)
    assert done.returncode == 1
    repository.write("a.py", OLD.replace("LEAK102", "LEAK201, LEAK401"))
    assert new(run, since="HEAD") == [("a.py", 11), ("a.py", 11)]


def test_files_that_become_links_and_back(repository: Repository, run: Run) -> None:
    repository.write("b.py", "import torch\nx = LEAK101\n")
    (repository.root / "c.py").symlink_to("b.py")
    repository.commit()
    (repository.root / "c.py").unlink()
    repository.write("c.py", "import torch\nx = LEAK101\nz = LEAK201\n")
    assert new(run, since="HEAD") == [("c.py", 2), ("c.py", 3)]


def test_it_goes_with_fixes_and_a_baseline(repository: Repository, run: Run) -> None:
    path = repository.write("a.py", OLD + "x = LEAK101\n")
    assert run("--new-since=main", "--fix").code == 0
    assert path.read_text() == OLD + "x = mended\n"
    repository.write("a.py", OLD + "z = LEAK101\n")
    run("baseline", "create")
    repository.write("a.py", OLD + "z = LEAK101\ny = LEAK301\n")
    assert new(run) == [("a.py", 14)]
    assert run("--new-since=main", "--add-ignores").err == "Ignored 1 problem.\n"
    assert path.read_text() == OLD + "z = LEAK101\ny = LEAK301  # torchmemlint: ignore[TML301]\n"


def test_notebooks(repository: Repository, run: Run) -> None:
    def write(*cells: str) -> None:
        kind = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
        listed = [{**kind, "id": f"c{n}", "source": cell} for n, cell in enumerate(cells)]
        contents = {"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        repository.write("a.ipynb", json.dumps(contents))

    write("import torch", "%time\nx = LEAK101")
    repository.commit()
    write("import torch", "# more", "x = LEAK102", "%time\nx = LEAK101")
    done = run("--new-since=HEAD", "--output-format=json")
    assert [one["code"] for one in json.loads(done.out)] == ["TML102"]


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        ("nowhere", "git knows no commit `nowhere`"),
        ("--output=x", "git knows no commit `--output=x`"),
        ("", "git knows no commit ``"),
        ("main:a.py", "git knows no commit `main:a.py`"),
        ("unrelated", "it has no history in common with HEAD"),
    ],
)
def test_revisions_that_do_not_do(repository: Repository, run: Run, revision: str, said: str) -> None:
    repository.git("checkout", "-q", "--orphan", "unrelated")
    repository.commit("another beginning")
    repository.git("checkout", "-q", "work")
    done = run(f"--new-since={revision}")
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not (repository.root / "x").exists()


def test_a_history_that_is_cut_off(repository: Repository, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write("b.py", "import torch\n")
    repository.commit()
    shallow = repository.root.parent / f"{repository.root.name}-shallow"
    repository.git("clone", "-q", "--depth=1", f"file://{repository.root}", str(shallow))
    monkeypatch.chdir(shallow)
    done = run("--new-since=main")
    assert done.code == 2
    assert "fetch more of it (`git fetch --unshallow`, or `fetch-depth: 0` in CI)" in done.err.replace("\n", " ")
    shutil.rmtree(shallow)


def test_no_repository_no_commit_no_git(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.py").write_text(OLD)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.parent))
    outside = run("--new-since=main")
    assert (outside.code, "not a git repository" in outside.err) == (2, True)
    Repository(project)
    empty = run("--new-since=HEAD")
    assert (empty.code, "git knows no commit `HEAD`" in empty.err) == (2, True)
    monkeypatch.setenv("PATH", str(project))
    without = run("--new-since=HEAD")
    assert (without.code, "git cannot be run: No such file or directory" in without.err) == (2, True)


def test_what_it_does_not_go_with(repository: Repository, run: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert run("--new-since=main", "-", stdin=b"x = 1\n").code == 2
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "a.py").write_text(OLD)
    done = run("--new-since=main", str(elsewhere))
    assert (done.code, "is not in the repository" in done.err) == (2, True)
