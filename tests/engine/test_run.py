import gc
import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from torchmemlint.config.resolver import Resolver
from torchmemlint.engine import garbage, pool
from torchmemlint.engine.cache import snapshot
from torchmemlint.engine.one_file import Fixing
from torchmemlint.engine.pool import Task, workers_for
from torchmemlint.engine.run import RunReport
from torchmemlint.engine.runner import Request, profile_for, run, run_bytes
from torchmemlint.source.discovery import discover


def check(root: Path, jobs: int | None = None, fixing: Fixing = Fixing.NONE) -> RunReport:
    resolver = Resolver(root, isolated=True)
    return run(Request(discover([root], resolver.settings_for).files, resolver, fixing, jobs=jobs))


def places(report: RunReport, root: Path) -> list[tuple[str, int, str]]:
    return [(f.filename.relative_to(root).as_posix(), f.span.start.row, f.code) for f in report.findings]


@pytest.fixture
def horrors(tmp_path: Path) -> Path:
    """A directory in which everything that can be wrong with a file is wrong with one."""
    root = tmp_path / "horrors"
    root.mkdir()
    files = {
        "bom.py": b"\xef\xbb\xbfimport torch\nLEAK101\n",
        "broken.py": b"import torch\ndef broken(:\n",
        "crlf.py": b"import torch\r\nx = '''\r\n'''\r\nLEAK101\r\n",
        "empty.py": b"",
        "latin1.py": "# coding: latin-1\nimport torch\nx = 'é'; LEAK101\n".encode("latin-1"),
        "null.py": b"import torch\n\0",
        "python2.py": b"import torch\nprint 'loss', loss\n",
        "undeclared.py": b"import torch\nx = '\xe9'\n",
        "vast.py": b"import torch\n" + b"# a line like all the many others here\n" * 130_000 + b"LEAK101\n",
        "sub/fine.py": b"import torch\nLEAK101\n",
        "folder.py/inner.py": b"import torch\nLEAK101\n",
    }
    for name, data in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(data)
    (root / "sub" / "loop").symlink_to(root, target_is_directory=True)
    (root / "dangling.py").symlink_to("nowhere.py")
    return root


@pytest.mark.parametrize("jobs", [1, 3])
def test_directory_of_horrors(horrors: Path, jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_BYTES_PER_WORKER", 1)
    report = check(horrors, jobs)
    assert places(report, horrors) == [
        ("bom.py", 2, "TML101"),
        ("broken.py", 2, "TML000"),
        ("crlf.py", 4, "TML101"),
        ("dangling.py", 1, "TML000"),
        ("folder.py/inner.py", 2, "TML101"),
        ("latin1.py", 3, "TML101"),
        ("null.py", 2, "TML000"),
        ("python2.py", 2, "TML000"),
        ("sub/fine.py", 2, "TML101"),
        ("undeclared.py", 2, "TML000"),
        ("vast.py", 130_002, "TML101"),
    ]
    assert report.errors == ()
    assert (report.files_checked, report.files_skipped) == (11, 1)
    assert report.failing == 11
    assert all("\n" not in finding.message for finding in report.findings)


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("import torch\nLEAK101\n")
    (tmp_path / "secret.py").write_text("import torch\nLEAK101\n")
    opened = os.open

    def guarded(path: str, *arguments: int, **more: int) -> int:
        if str(path).endswith("secret.py"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **more)

    monkeypatch.setattr(os, "open", guarded)
    report = check(tmp_path)
    assert places(report, tmp_path) == [("a.py", 2, "TML101"), ("secret.py", 1, "TML000")]
    assert report.findings[1].message == "Cannot be read: Permission denied"
    assert report.sources(tmp_path / "secret.py") == []


def test_processes_give_what_one_process_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_BYTES_PER_WORKER", 1)
    for number in range(60):
        text = "import torch\n" + "x = 1\n" * (number * 7 % 40) + "LEAK101\nLEAK401\n" * (number % 4)
        (tmp_path / f"f{number:02}.py").write_text(text)
    seen: list[int] = []
    one = check(tmp_path, 1)
    resolver = Resolver(tmp_path, isolated=True)
    request = Request(discover([tmp_path], resolver.settings_for).files, resolver, jobs=4)
    many = run(request, seen.append)
    assert many.findings == one.findings
    assert [f.fingerprint for f in many.findings] == [f.fingerprint for f in one.findings]
    assert seen == list(range(1, 61))


def test_last_batches_are_small(tmp_path: Path) -> None:
    tasks = [Task(tmp_path / f"f{number}.py", 0, 1_000) for number in range(4_000)]
    profiles = [profile_for(Resolver(tmp_path, isolated=True).settings_for(tmp_path), tasks[0].path)]
    batches = pool._batches(tasks, profiles, 2)
    assert sorted(number for batch in batches for number, _ in batch) == list(range(4_000))
    sizes = [len(batch) for batch in batches]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 34  # a fortieth of a half, a file being some more work than its bytes are
    assert sizes[-1] < 8


def test_dead_workers_cost_their_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_BYTES_PER_WORKER", 1)
    for number in range(30):
        (tmp_path / f"f{number:02}.py").write_text("import torch\nLEAK101\n" + "DIE" * (number in (3, 4, 20)))
    report = check(tmp_path, 2)
    assert len(report.findings) == 27
    assert [Path(error.split(":")[0]).name for error in report.errors] == ["f03.py", "f04.py", "f20.py"]
    assert "ended with status 7" in report.errors[0]


def test_crashes_are_reported_with_their_tracebacks(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("torch CRASH")
    (tmp_path / "b.py").write_text("import torch\nLEAK101\n")
    report = check(tmp_path)
    assert len(report.findings) == 1
    assert report.errors == (f"{tmp_path / 'a.py'}: internal error: ZeroDivisionError: a rule divided by zero",)
    assert len(report.tracebacks) == 1


def test_interrupt_ends_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import multiprocessing

    monkeypatch.setattr(pool, "_BYTES_PER_WORKER", 1)
    for number in range(10):
        (tmp_path / f"f{number}.py").write_text("import torch\n")

    def interrupted(done: int) -> None:
        raise KeyboardInterrupt

    resolver = Resolver(tmp_path, isolated=True)
    request = Request(discover([tmp_path], resolver.settings_for).files, resolver, jobs=2)
    with pytest.raises(KeyboardInterrupt):
        run(request, interrupted)
    assert multiprocessing.active_children() == []


@pytest.mark.skipif(not pool._can_fork(), reason="spawned processes do not know this module")
def test_workers_that_do_not_heed_it_are_ended_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many they are, an interrupt takes no longer than one of them may."""
    import multiprocessing

    monkeypatch.setattr(pool, "_FAREWELL", 0.4)
    context = multiprocessing.get_context("fork")
    workers = []
    for _ in range(4):
        here, there = context.Pipe()
        process = context.Process(target=_deaf, args=(there,), daemon=True)
        process.start()
        assert here.recv() == "deaf"
        workers.append(pool._Worker(process, here, ()))
    began = time.monotonic()
    pool._end(workers)
    assert 0.4 <= time.monotonic() - began < 1.2
    assert multiprocessing.active_children() == []


def _deaf(pipe: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pipe.send("deaf")
    time.sleep(60)


@pytest.mark.parametrize(("cyclic", "collections"), [(False, 0), (True, 2)], ids=["let go of", "in cycles"])
def test_collector_comes_for_what_reference_counts_leave(
    cyclic: bool, collections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collection looks through all that lives."""
    monkeypatch.setattr(garbage, "_MOST_UNCOLLECTED", 10_000)
    seen: list[int] = []

    def take_down(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            seen.append(info["collected"])

    with garbage.quiet_collector() as collect:
        gc.collect()
        gc.callbacks.append(take_down)
        try:
            for _ in range(25):
                for _ in range(1_000):
                    made: list[object] = []
                    if cyclic:
                        made.append(made)
                collect()
        finally:
            gc.callbacks.remove(take_down)
    assert len(seen) == collections
    assert all(found >= 9_000 for found in seen)


def test_collector_is_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n")
    assert gc.isenabled()
    check(tmp_path, 1)
    assert gc.isenabled()


def test_fixed_text_is_what_the_frames_show(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nLEAK101\nLEAK102\n")
    report = check(tmp_path, fixing=Fixing.WRITE)
    assert report.fixes_applied_to_disk
    assert report.sources(tmp_path / "a.py") == ["import torch", "mended", "LEAK102"]
    assert len(report.fixed) == 1


def test_bytes_at_hand_are_never_written(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("on disk")
    request = Request((), Resolver(tmp_path, isolated=True), Fixing.WRITE)
    report = run_bytes(b"import torch\nLEAK101\n", file, request)
    assert report.fixed[0].after == "import torch\nmended\n"
    assert file.read_text() == "on disk"
    assert report.sources(file) == ["import torch", "mended"]


def test_number_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "cpus", lambda: 8)
    small = [Task(Path("a.py"), 0, 1000)] * 5
    large = [Task(Path("a.py"), 0, 1_000_000)] * 100
    assert workers_for([], None) == 1
    assert workers_for(small, None) == 1
    assert workers_for(small, 4) == 1
    assert workers_for(large, None) == 8
    assert workers_for(large, 3) == 3
    assert workers_for(large[:2], None) == 2


@pytest.mark.skipif(not pool._can_fork(), reason="starting a process costs more than it saves there")
def test_few_changes_find_a_worker_that_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import multiprocessing

    early: list[bool] = []
    start = pool._Worker.start
    monkeypatch.setattr(pool._Worker, "start", lambda *given, **more: early.append(bool(more)) or start(*given, **more))
    monkeypatch.setattr(snapshot, "SETTLED", 0.0)
    root = tmp_path / "project"
    root.mkdir()
    (root / "torchmemlint.toml").touch()
    for name in "abc":
        (root / f"{name}.py").write_text("import torch\nLEAK101\n")

    def again(jobs: int | None = None) -> tuple[list[tuple[str, int, str]], int, list[bool]]:
        resolver = Resolver(root, bounded=True)
        files = discover([root], resolver.settings_for).files
        report = run(Request(files, resolver, jobs=jobs, use_cache=True, cache_dir=tmp_path / "kept", apart=True))
        started = list(early)
        early.clear()
        return places(report, root), report.from_cache, started

    found = [("a.py", 2, "TML101"), ("b.py", 2, "TML101"), ("c.py", 2, "TML101")]
    assert again() == (found, 0, [True])
    assert again() == (found, 3, [])  # nothing to do, nobody was called
    (root / "b.py").write_text("import torch\n\nLEAK101\n")
    found[1] = ("b.py", 3, "TML101")
    assert again() == (found, 2, [True])
    monkeypatch.setattr(pool, "_BYTES_PER_WORKER", 1)
    for name in "abc":
        (root / f"{name}.py").write_text("import torch\n\n\nLEAK101\n")
    found = [(name, 4, code) for name, _, code in found]
    assert again(2) == (found, 0, [False, False])  # they share what is imported before they start
    assert multiprocessing.active_children() == []


@pytest.mark.skipif(not pool._can_fork(), reason="none is started there")
def test_a_worker_that_nobody_needs_ends() -> None:
    import multiprocessing

    with pool.Reserve() as reserve:
        reserve.call(())
        assert len(multiprocessing.active_children()) == 1
    assert multiprocessing.active_children() == []


def test_orphaned_worker_ends(tmp_path: Path) -> None:
    parent, child = pool.multiprocessing.get_context("fork").Pipe()
    pid = os.fork()
    if pid == 0:
        pool._work(child, parent, (), early=False)
        os._exit(5)
    child.close()
    parent.close()  # nobody is there any more
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
