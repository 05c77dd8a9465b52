"""One cache for many runs, and one that cannot be written."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.robustness.conftest import LEAK, Launch, Run, command, environment


def test_eight_runs_at_once_say_the_same(project: Path) -> None:
    for number in range(6):
        (project / f"f{number}.py").write_text(LEAK)
    arguments = command("--cache-dir", str(project.parent / "kept"))
    known = environment(TORCHMEMLINT_NO_CACHE="")
    runs = [
        subprocess.Popen(arguments, cwd=project, env=known, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(8)
    ]
    told = [(*one.communicate(), one.returncode) for one in runs]
    assert len(set(told)) == 1
    assert told[0][1:] == (b"", 1)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said(project: Path, launch: Launch) -> None:
    folder = project.parent / "kept"
    folder.mkdir(mode=0o500)
    done = launch(f"--cache-dir={folder}", env=environment(TORCHMEMLINT_NO_CACHE=""))
    assert done.returncode == 1
    assert "results of earlier runs are not used" in done.stderr


@pytest.mark.parametrize("message", ["attempt to write a readonly database", "database or disk is full"])
@pytest.mark.parametrize("known", [False, True])
def test_a_store_that_takes_nothing_changes_no_result(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch, message: str, known: bool
) -> None:
    """As on a read-only or full disk, for whoever may write anywhere, too."""
    writing = ("INSERT", "REPLACE", "UPDATE", "DELETE", "CREATE", "DROP", "VACUUM")

    class Refusing(sqlite3.Connection):
        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            if sql.lstrip().upper().startswith(writing):
                raise sqlite3.OperationalError(message)
            return super().execute(sql, *given)

        def executemany(self, sql: str, *given: Any) -> sqlite3.Cursor:
            raise sqlite3.OperationalError(message)

        def executescript(self, script: str) -> sqlite3.Cursor:
            raise sqlite3.OperationalError(message)

    monkeypatch.setenv("TORCHMEMLINT_NO_CACHE", "")
    arguments = (f"--cache-dir={project.parent / 'kept'}", "-q")
    first = run(*arguments) if known else run("--no-cache", "-q")
    (project / "b.py").write_text(LEAK)
    expected = run("--no-cache", "-q")
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: connect(*given, **{**more, "factory": Refusing}))
    done = run(*arguments)
    assert first.returncode == done.returncode == 1
    assert done.stdout == expected.stdout
    assert "internal error" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_made_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHMEMLINT_NO_CACHE", "")
    done = run("--cache-dir=a.py/kept")
    assert (done.returncode, done.stdout) == (1, run("--no-cache").stdout)
    assert "results of earlier runs are not used" in done.stderr
