"""Files that are none, that change while they are looked at, and disks that are full."""

from __future__ import annotations

import os
import random
import signal
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from tests.robustness.conftest import LEAK, MENDED, Launch, Run, command, environment
from torchmemlint.engine import one_file
from torchmemlint.engine.cache import snapshot
from torchmemlint.engine.one_file import Fixing, Profile, check_file
from torchmemlint.fixes import write
from torchmemlint.regular import LEFTOVER

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs the files of Unix")
FOUND = "a.py:9:9: TML101 [*] `total += loss` keeps every iteration's graph nodes (CPU memory)"
FIX = Profile(frozenset({"TML000", "TML101"}), fixing=Fixing.WRITE)


# -- what is no file ---------------------------------------------------------------------------------------------------


def test_what_is_no_file_is_not_waited_for(project: Path, run: Run) -> None:
    """Pipes and devices, under every name that anything of ours looks for."""
    (project / "torchmemlint.toml").rename(project / ".torchmemlint.toml")
    for name in (
        "pipe.py", "helper.py", "torchmemlint.toml", "pyproject.toml", "requirements.txt", "setup.py", ".gitignore",
        "torchmemlint-baseline.json",
    ):  # fmt: skip
        os.mkfifo(project / name)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.py")  # here, since a socket's name may not be long
        (project / "zero.py").symlink_to("/dev/zero")
        (project / "setup.cfg").symlink_to("/dev/zero")
        (project / "a.py").write_text("from helper import x\n" + LEAK)
        done = run("--no-baseline")
    assert done.returncode == 1
    assert done.stdout.replace("a.py:10", "a.py:9").startswith(FOUND)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["torchmemlint-baseline.json", "torchmemlint-measured.json"])
def test_a_pipe_where_a_list_should_be_is_an_error_or_a_notice(project: Path, run: Run, name: str) -> None:
    os.mkfifo(project / name)
    done = run()
    assert (done.returncode, "not a regular file" in done.stderr) == ((2 if "baseline" in name else 1), True)


def test_a_file_that_becomes_a_pipe_or_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    os.mkfifo(path)
    result = check_file(path, FIX)
    assert [one.message for one in result.findings] == ["Cannot be read: not a regular file"]
    path.unlink()
    assert [one.message for one in check_file(path, FIX).findings] == ["Cannot be read: No such file or directory"]


# -- what changes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("then", [LEAK + "# an edit\n", None])
def test_what_was_written_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str | None) -> None:
    path = tmp_path / "a.py"
    path.write_text(LEAK)
    read = one_file.read

    def racing(path: Path, most: int | None = None) -> bytes:
        data = read(path, most)
        path.unlink()
        if then is not None:
            path.write_text(then)
        return data

    monkeypatch.setattr(one_file, "read", racing)
    result = check_file(path, FIX)
    assert [one.code for one in result.findings] == ["TML101"]
    assert (path.read_text() if path.exists() else None) == then
    assert list(tmp_path.iterdir()) == ([path] if then is not None else [])
    reason = "the fixed text cannot be written: No such file or directory"
    if then is not None:
        reason = "changed while it was checked: it is left as it is now, for the next run"
    assert result.problem == f"{path}: {reason}"


# -- full disks --------------------------------------------------------------------------------------------------------


def no_more_than(size: int) -> None:
    """As on a full disk: files end there."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_leaves_the_old_files_and_says_so(project: Path, launch: Launch) -> None:
    (project / "report.json").write_text("old")
    known = environment(TORCHMEMLINT_NO_CACHE="")
    arguments = ("--fix", f"--cache-dir={project / 'kept'}", "--output-format=concise,json:report.json")
    done = launch(*arguments, env=known, preexec_fn=lambda: no_more_than(100))
    assert done.returncode == 2
    assert "report.json: cannot be written: File too large" in done.stderr
    done = launch(*arguments[:2], env=known, preexec_fn=lambda: no_more_than(100))
    assert done.returncode == 2
    assert "a.py: the fixed text cannot be written: File too large" in done.stderr
    assert "results of earlier runs are not used" in done.stderr
    assert "internal error" not in done.stderr
    assert done.stdout.startswith(FOUND)
    assert (project / "a.py").read_text() == LEAK
    assert (project / "report.json").read_text() == "old"
    assert not list(project.glob(f".*{LEFTOVER}"))


def test_a_full_disk_leaves_the_old_baseline(project: Path, launch: Launch) -> None:
    (project / "known.json").write_text("old")
    done = launch("baseline", "create", "--force", "--baseline=known.json", preexec_fn=lambda: no_more_than(100))
    assert (done.returncode, "known.json: cannot be written: File too large" in done.stderr) == (2, True)
    assert (project / "known.json").read_text() == "old"
    assert not list(project.glob(f".*{LEFTOVER}"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_standard_output_is_said(launch: Launch) -> None:
    with Path("/dev/full").open("w") as full:
        done = launch(capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (
        2,
        "error: standard output cannot be written: No space left on device\n",
    )


# -- a cache that is none ----------------------------------------------------------------------------------------------


def test_no_bytes_in_a_cache_change_what_is_found(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project.parent / "kept"
    monkeypatch.setenv("TORCHMEMLINT_NO_CACHE", "")
    monkeypatch.setattr(snapshot, "SETTLED", 0)
    arguments = (f"--cache-dir={folder}", "-q")
    first = run(*arguments)
    (store,) = folder.glob("*.sqlite3")
    whole = store.read_bytes()
    for seed in range(5):
        choose = random.Random(seed)
        damaged = bytearray(whole[: choose.choice((len(whole), choose.randrange(len(whole))))])
        for _ in range(choose.randint(1, choose.choice((3, 300))) if damaged else 0):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        store.write_bytes(damaged)
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (1, first.stdout)
        assert "Traceback" not in done.stderr
    said = "total += loss` keeps"
    store.write_bytes(whole.replace(said.encode(), b"totaL += loss` keeps"))  # SQLite sees nothing wrong with it
    assert whole != store.read_bytes()
    assert run(*arguments).stdout == first.stdout


def test_a_cache_in_the_tree_cannot_be_somebody_elses_file(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "torchmemlint.toml").write_text('cache-dir = "kept"\n')
    monkeypatch.setenv("TORCHMEMLINT_NO_CACHE", "")
    run()
    (store,) = (project / "kept").glob("*.sqlite3")
    store.unlink()
    victim = project.parent / "cookies.sqlite3"
    with sqlite3.connect(victim) as connection:
        connection.execute("CREATE TABLE results (x)")
    before = victim.read_bytes()
    store.symlink_to(victim)
    for name in ("CACHEDIR.TAG", ".gitignore"):
        (project / "kept" / name).unlink()
        (project / "kept" / name).symlink_to(project.parent / f"made-{name}")
    done = run()
    assert (done.returncode, done.stdout.startswith(FOUND)) == (1, True)
    assert "it is a link" in done.stderr
    assert victim.read_bytes() == before
    assert not list(project.parent.glob("made-*"))


# -- an end in the middle ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_fix_leaves_each_file_old_or_new(project: Path, run: Run, end: signal.Signals) -> None:
    names = [f"f{number}.py" for number in range(12)]
    for name in names:
        (project / name).write_text(LEAK)
    with subprocess.Popen(
        command("--fix", "--no-cache", "--select=TML101"),
        cwd=project,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None and (project / names[0]).read_text() == LEAK:
            time.sleep(0.001)
        process.send_signal(end)
    time.sleep(0.1)
    assert {(project / name).read_text() for name in names} <= {LEAK, MENDED}
    assert run("--fix", "--no-cache", "--select=TML101").returncode == 0
    assert {(project / name).read_text() for name in names} == {MENDED}
    assert not list(project.glob(f".*{LEFTOVER}"))


def test_what_a_killed_run_has_left_is_told_and_removed(project: Path, run: Run) -> None:
    left = project / f".a.py.x{LEFTOVER}"
    left.write_text("half")
    done = run("-q")
    assert (done.returncode, left.exists()) == (1, True)
    assert done.stderr == f"notice: {left}: left by a run that was killed; the next one with --fix removes it\n"
    done = run("-q", "--fix")
    assert (done.returncode, left.exists()) == (0, False)
    assert f"notice: {left}: removed" in done.stderr


def test_what_another_run_is_writing_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    removed: list[Path] = []
    sync = os.fsync

    def meanwhile(handle: int) -> None:
        removed.extend(write.remove_leftovers(tmp_path.glob(f".*{LEFTOVER}")))
        sync(handle)

    monkeypatch.setattr(os, "fsync", meanwhile)
    write.write_atomically(path, b"new")
    assert (path.read_bytes(), removed) == (b"new", [])


@pytest.mark.parametrize("name", ["é" * 100 + ".py", "x" * 250 + ".py"])
def test_names_as_long_as_they_may_be(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LEAK)
    assert check_file(tmp_path / name, FIX).problem == ""
    assert (tmp_path / name).read_text() == MENDED


# -- many files --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_tree_hides_nothing(project: Path, run: Run) -> None:
    """Most files of a large tree have nothing to do with torch; the few that have are found, each once."""
    for folder in range(40):
        place = project / f"part{folder}" / "inner"
        place.mkdir(parents=True)
        for number in range(200):
            (place / f"module{number}.py").write_text("x = 1\n")
        (place / "train.py").write_text(LEAK)
    done = run()
    assert [done.stdout.count(f"part{folder}/inner/train.py:9:9: TML101") for folder in range(40)] == [1] * 40
    assert "Found 41 problems" in done.stdout
    assert done.stderr == ""
