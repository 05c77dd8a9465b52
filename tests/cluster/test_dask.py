"""Runs on real clusters on this machine: each worker a process, or, where nothing is killed, a thread of this one."""

import contextlib
import io
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.leaking import LEAK
from torchmemlint.cli.main import main
from torchmemlint.config.layers import Layer
from torchmemlint.config.resolver import Resolver
from torchmemlint.doubts import Doubt
from torchmemlint.engine.cluster import dask_executor, remote, stamp
from torchmemlint.engine.cluster.dask_executor import ClusterError, connected
from torchmemlint.engine.runner import Request, run
from torchmemlint.source.discovery import discover

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
FreeKeysEvent = pytest.importorskip("distributed.worker_state_machine").FreeKeysEvent

METERED = """\
import torch
from meters import Meter


def run(model, loader, opt):
    meter = Meter()
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        opt.step()
        meter.update(loss)
    return meter
"""
METER = """\
class Meter:
    def __init__(self):
        self.all = []

    def update(self, value):
        self.all.append(value)
"""
KILLER = '''
import os, signal
from torchmemlint.plugins import Rule, Severity

class Killer(Rule):
    """Ends the worker that has a file with a certain name in hand.

    ## What it does
    That.

    ## Why it costs memory
    It does not.
    """

    code, name, severity, why = "KIL101", "killer", Severity.ERROR, "it kills"

    def check(self, facts):
        if facts.path.name == "deadly.py":
            os.kill(os.getppid(), signal.SIGKILL)
        return iter(())
'''


DOUBTING = '''
from torchmemlint.plugins import Doubt, Rule, Severity, calls, report

class Doubting(Rule):
    """Doubts what it finds.

    ## What it does
    That.

    ## Why it costs memory
    It does not.
    """

    code, name, severity, why = "DBT101", "doubting", Severity.ERROR, "it does not"

    def check(self, facts):
        for call in calls(facts, "*.backward"):
            yield report(self, facts, call, "likely", doubts=[Doubt.GIVEN])
            yield report(self, facts, call, "possible", doubts=[Doubt.MODE])
'''


@contextlib.contextmanager
def cluster(*, processes: bool, workers: int = 2, **config: Any) -> Iterator[Any]:
    # Read by the scheduler as it starts.
    with (
        dask.config.set(config),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=processes,
            protocol="tcp",
            dashboard_address=":0",
        ) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def threads() -> Iterator[Any]:
    with cluster(processes=False) as found:
        yield found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in which files need one another."""
    root = tmp_path / "project"
    files = {f"leak_{number:02}.py": LEAK for number in range(12)} | {
        "meters.py": METER,
        "metered.py": METERED,
        "broken.py": "import torch\ndef broken(:\n",
        "plain.py": "print('no such word')\n",
        "my-examples/train.py": METERED,
        "my-examples/meters.py": METER,
        "a.ipynb": json.dumps({"cells": [], "metadata": {"torch": 1}, "nbformat": 4, "nbformat_minor": 5}),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_text(text)
    (root / "closed.py").symlink_to("nowhere.py")
    return root


def check(*arguments: str) -> tuple[int, str]:
    """The exit code of a run, and what it wrote."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
        code = main(["check", "--isolated", "--select", "ALL", "--color=never", *arguments])
    return code, written.getvalue()


def address(found: Any) -> str:
    return str(found.scheduler_address).replace("tcp://", "dask://")


def request(root: Path, executor: Any = None, **layer: Any) -> Request:
    resolver = Resolver(root, isolated=True, layer=Layer(select=("ALL",), **layer))
    return Request(discover([root], resolver.settings_for).files, resolver, executor=executor)


def shown(report: Any) -> list[Any]:
    return [report.findings, report.files_checked, report.files_skipped, report.errors, report.notices]


def test_the_same_is_found_as_here(project: Path, threads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    here = check("--output-format", "json")
    there = check("--output-format", "json", "--executor", address(threads))
    assert there == here
    assert here[0] == 1
    found = {(Path(one["filename"]).name, one["code"]) for one in json.loads(here[1])}
    assert {("metered.py", "TML102"), ("train.py", "TML102"), ("broken.py", "TML000"), ("closed.py", "TML000")} <= found


def test_doubts_come_back_and_how_many_findings_are_not_shown(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "doubting_rules.py").write_text("# torchmemlint\n" + DOUBTING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(remote, "_IDLE", remote._Idle())  # processes that wait do not know that path
    with cluster(processes=False) as found, connected(found.scheduler_address) as executor:
        there = run(request(project, executor, plugins=("doubting_rules",)))
    here = run(request(project, plugins=("doubting_rules",)))
    assert shown(there) == shown(here)
    doubted = [finding.doubts for finding in there.findings if finding.code == "DBT101"]
    assert set(doubted) == {(Doubt.GIVEN,)}
    assert there.unsure == here.unsure == len(doubted)


def test_a_worker_is_killed_in_the_middle(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "_BYTES_PER_BATCH", 1)  # a task for each file
    monkeypatch.setattr(dask_executor, "_BATCHES_PER_THREAD", 2)
    killed: list[int] = []

    with cluster(processes=True) as found, connected(found.scheduler_address) as executor:

        def progress(done: int) -> None:
            if done >= 6 and not killed:
                pids = executor._client.run(os.getpid)
                busy = executor._client.processing()
                victim = max(pids, key=lambda worker: len(busy[worker]))
                killed.append(pids[victim])
                os.kill(pids[victim], signal.SIGKILL)

        there = run(request(project, executor), progress)
    assert len(killed) == 1
    assert shown(there) == shown(run(request(project)))


@pytest.mark.skipif(
    "TORCHMEMLINT_SLOW_TESTS" not in os.environ, reason="twelve seconds; TORCHMEMLINT_SLOW_TESTS=1 asks for it"
)
def test_what_takes_workers_along_is_reported_and_all_else_is_checked(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "killer_rules.py").write_text("# torchmemlint\n" + KILLER)
    (project / "deadly.py").write_text(LEAK)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    allowed = {"distributed.scheduler.allowed-failures": 0}
    with cluster(processes=True, **allowed) as found, connected(found.scheduler_address) as executor:
        there = run(request(project, executor, plugins=("killer_rules",)))
    (project / "deadly.py").write_text("print('nothing')\n")
    here = run(request(project))
    deadly = [one for one in there.findings if one.filename.name == "deadly.py"]
    assert [(one.code, one.span.start.row) for one in deadly] == [("TML000", 1)]
    assert "the worker of the cluster that had it in hand was lost" in deadly[0].message
    assert [one for one in there.findings if one not in deadly] == list(here.findings)


def test_what_workers_forget_is_handed_out_anew(project: Path, threads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when scheduler and worker disagree after a loss: the one waits, and the other has nothing to do."""
    monkeypatch.setattr(dask_executor, "_BYTES_PER_BATCH", 1)
    monkeypatch.setattr(dask_executor, "_SILENCE", 0.3)
    forgotten: list[int] = []

    def forget(dask_worker: Any) -> int:
        keys = list(dask_worker.state.tasks)
        dask_worker.handle_stimulus(FreeKeysEvent(stimulus_id="a test", keys=keys))
        return len(keys)

    with connected(threads.scheduler_address) as executor:

        def progress(done: int) -> None:
            if done == 6:
                forgotten.extend(executor._client.run(forget).values())

        there = run(request(project, executor), progress)
    assert sum(forgotten) > 0
    assert shown(there) == shown(run(request(project)))


def test_nobody_answers() -> None:
    start = time.monotonic()
    code, written = check("--executor", "dask://127.0.0.1:9")
    assert code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in written
    assert time.monotonic() - start < 10


def test_no_worker_comes(project: Path) -> None:
    missed = pytest.raises(ClusterError, match="no workers for 0 s")
    with cluster(processes=False, workers=0) as found, missed, connected(found.scheduler_address, patience=0.2):
        raise AssertionError


def test_all_workers_go(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "_BYTES_PER_BATCH", 1)
    monkeypatch.setattr(dask_executor, "_LOOK", 0.1)
    with cluster(processes=False) as found, connected(found.scheduler_address, patience=0.3) as executor:

        def progress(done: int) -> None:
            if done == 4:
                found.scale(0)

        with pytest.raises(ClusterError, match="no workers for 0 s"):
            run(request(project, executor), progress)


def test_a_worker_of_another_kind(threads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = dict(stamp.own())
    answers = iter([here | {"torchmemlint": "9.9.9 (abcd)"}, here, here])
    monkeypatch.setattr(stamp, "own", lambda plugins=(): next(answers))
    differs = pytest.raises(ClusterError, match=r"torchmemlint is .* there and 9.9.9 \(abcd\) here")
    with differs, connected(threads.scheduler_address):
        raise AssertionError


def test_a_worker_that_comes_later_is_of_another_kind(
    project: Path, threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(threads.scheduler_address) as executor:
        monkeypatch.setattr(stamp, "own", lambda plugins=(): {"torchmemlint": "9.9.9 (abcd)"})
        with pytest.raises(ClusterError, match="a worker would not find the same as this machine: Python is missing"):
            run(request(project, executor))


def test_limits_hold_there_as_here(project: Path, tmp_path: Path, threads: Any) -> None:
    (project / "deep.py").write_text("import torch\nx = " + "(" * 150 + "1" + ")" * 150 + "\n")
    (project / "large.py").write_text(LEAK + "# and so on\n" * 20_000)
    limits = (("nesting", 100.0), ("size", 0.1))
    with connected(threads.scheduler_address) as executor:
        there = run(request(project, executor, limits=limits))
        (tmp_path / "slow").mkdir()
        (tmp_path / "slow" / "a.py").write_text(LEAK)
        slow = run(request(tmp_path / "slow", executor, limits=(("time", 1e-6),)))
    assert shown(there) == shown(run(request(project, limits=limits)))
    assert any("(limit `size`)" in one.message for one in there.findings)
    assert ["(limit `time`)" in one.message for one in slow.findings] == [True]


def test_interrupted(project: Path, threads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "_BYTES_PER_BATCH", 1)

    def progress(done: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with connected(threads.scheduler_address) as executor, pytest.raises(KeyboardInterrupt):
        run(request(project, executor), progress)
    deadline = time.monotonic() + 5
    while threads.scheduler.tasks and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not threads.scheduler.tasks


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--executor", "dask://nowhere"), "neither `local` nor of the form dask://HOST:PORT"),
        (("--executor", "slurm://host:1"), "neither `local` nor of the form"),
        (("--executor", "dask://host:1", "--fix"), "--fix changes files, which is done here"),
        (("--executor", "dask://host:1", "--add-ignores"), "--add-ignores changes files"),
        (("--executor", "dask://host:1", "-"), "not for standard input"),
        (("--executor", "dask://host:1", "--plugins", "{path}"), "a file does not reach the workers"),
    ],
)
def test_refused(arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rules = tmp_path / "rules.py"
    rules.write_text(KILLER)
    code, written = check(*(word.format(path=rules) for word in arguments))
    assert code == 2
    assert message in written.replace("\n", " ")
