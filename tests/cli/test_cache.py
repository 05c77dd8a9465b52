"""`torchmemlint cache`, and what `check` does with results of earlier runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def kept(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a run has left its results in."""
    from torchmemlint.engine.cache import snapshot

    folder = project.parent / f"{project.name}-kept"
    monkeypatch.setenv("TORCHMEMLINT_CACHE_DIR", str(folder))
    monkeypatch.delenv("TORCHMEMLINT_NO_CACHE")
    monkeypatch.setattr(snapshot, "SETTLED", 0.0)
    (project / "a.py").write_text("import torch\nLEAK101\n")
    (project / "b.py").write_text("import torch\n")
    assert run("a.py", "b.py").code == 1
    return folder


def test_the_second_run_uses_what_the_first_has_kept(kept: Path, run: Run, project: Path) -> None:
    first, second = run("a.py", "b.py", "--no-cache"), run("a.py", "b.py", "--verbose")
    assert (second.code, second.out) == (1, first.out)
    assert "of 2 files the result of an earlier run still holds" in second.err
    (project / "a.py").write_text("import torch\n")
    third = run("a.py", "b.py", "--verbose")
    assert third.code == 0
    assert "of 1 file the result" in third.err
    assert "earlier run" not in run("a.py", "b.py", "--verbose", "--no-cache").err


def test_info_names_the_project(kept: Path, run: Run, project: Path) -> None:
    done = run("cache", "info")
    assert done.code == 0
    assert done.out.startswith(f"{kept}: 1 project, ")
    assert f"{project}: 2 results" in done.out
    (path,) = kept.glob("*.sqlite3")
    path.write_text("damaged" * 100)
    assert f"{path.name}: unreadable" in run("cache", "info").out
    assert path.read_text().startswith("damaged")


def test_clean_removes_this_projects_results_or_all(kept: Path, run: Run) -> None:
    (kept / "other-0123.sqlite3").write_bytes(b"")
    done = run("cache", "clean")
    assert (done.code, done.out.startswith("Removed ")) == (0, True)
    assert "of 1 project" in done.out
    assert [path.name for path in kept.glob("*.sqlite3")] == ["other-0123.sqlite3"]
    assert "0 B of 0 projects" in run("cache", "clean").out
    assert "of 1 project" in run("cache", "clean", "--all").out
    assert list(kept.glob("*.sqlite3")) == []


def test_there_may_be_nothing_yet(run: Run, project: Path) -> None:
    folder = project / "none"
    assert run("cache", "info", "--cache-dir", str(folder)).out == f"{folder}: 0 projects, 0 B\n"
    assert not folder.exists()


def test_no_cache_leaves_nothing(run: Run, project: Path) -> None:
    (project / "a.py").write_text("import torch\n")
    run("a.py", "--cache-dir", "kept", "--no-cache")
    assert not (project / "kept").exists()
