"""What no file gets beyond: the limits of time, memory, nesting and size, in this process and in workers."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.robustness import conftest
from torchmemlint.config.layers import Layer
from torchmemlint.config.limits import Limits, limits_of, read_limits
from torchmemlint.config.resolver import Resolver
from torchmemlint.engine import checking, pool
from torchmemlint.engine.one_file import FileResult, Profile, check_bytes, check_file
from torchmemlint.engine.run import RunReport
from torchmemlint.engine.runner import Request, run
from torchmemlint.engine.watching import Watch
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.registry import by_code
from torchmemlint.source.decoding import LimitReached
from torchmemlint.source.discovery import discover

LEAK = conftest.LEAK.encode()
FORKS = pytest.mark.skipif(not pool._can_fork(), reason="needs processes that cost little")
WHY = "Passed over: "


def checked(root: Path, apart: bool = True, **limits: float) -> RunReport:
    resolver = Resolver(root, isolated=True, layer=Layer(limits=tuple(limits.items())))
    return run(Request(discover([root], resolver.settings_for).files, resolver, jobs=1, apart=apart))


def told(report: RunReport) -> dict[str, str]:
    assert report.errors == ()
    return {one.filename.name: one.message for one in report.findings if one.code == "TML000"}


def messages(result: FileResult) -> list[str]:
    return [one.message for one in result.findings]


def found(report: RunReport) -> list[str]:
    return [one.filename.name for one in report.findings if one.code == "TML101"]


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A file between two others that something is found in."""
    for name in ("a.py", "z.py"):
        (tmp_path / name).write_bytes(LEAK)
    return tmp_path


def nested_patterns(depth: int, opening: str = "[", closing: str = "]") -> bytes:
    return f"import torch\n\n\nmatch torch:\n    case {opening * depth}x{closing * depth}:\n        pass\n".encode()


# -- time --------------------------------------------------------------------------------------------------------------


@FORKS
def test_what_hangs_and_hears_no_signal_costs_one_file(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a compiled parser does: one that Python gets no word in with."""
    monkeypatch.setattr(pool, "GRACE", 0.2)
    monkeypatch.setattr(pool, "_FAREWELL", 0.1)
    check_text = checking.check_text

    def hangs(text: str, *arguments: object, **options: object) -> object:
        if "HANGS" in text:
            signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
            while True:
                pass
        return check_text(text, *arguments, **options)

    check_bytes(LEAK, three / "a.py", Profile(frozenset({"TML101"})))  # what is imported late is, now
    monkeypatch.setattr(checking, "check_text", hangs)
    (three / "m.py").write_bytes(b"import torch\nHANGS = 1\n")
    report = checked(three, time=1)
    assert told(report) == {"m.py": WHY + "checking it takes more than 1 seconds of processor time (limit `time`)"}
    assert found(report) == ["a.py", "z.py"]


@FORKS
def test_what_sleeps_is_not_waited_for_without_end(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "GRACE", 0.2)
    monkeypatch.setattr(pool, "_IDLE", 1)
    check_bytes(LEAK, three / "a.py", Profile(frozenset({"TML101"})))
    check_text = checking.check_text

    def sleeps(text: str, *arguments: object, **options: object) -> object:
        if "SLEEPS" in text:
            time.sleep(600)
        return check_text(text, *arguments, **options)

    monkeypatch.setattr(checking, "check_text", sleeps)
    (three / "m.py").write_bytes(b"import torch\nSLEEPS = 1\n")
    report = checked(three, time=8)
    assert list(told(report)) == ["m.py"]
    assert found(report) == ["a.py", "z.py"]


def test_the_analysis_itself_looks_at_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"import torch\n\n\ndef step(model, x):\n    loss = model(x)\n    loss.backward()\n")
    profile = Profile(frozenset({"TML000", "TML101"}), root=tmp_path, limits=Limits(time=1e-9))
    result = check_file(path, profile)
    assert messages(result) == [WHY + "checking it takes more than 1e-09 seconds of processor time (limit `time`)"]
    assert result.digest is None  # not to be kept: another machine may have the time
    assert check_file(path, Profile(profile.codes, root=tmp_path)).findings == ()


@FORKS
def test_no_limit_is_none(three: Path) -> None:
    assert found(checked(three, time=0, memory=0, size=0)) == ["a.py", "z.py"]


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def greedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose text speaks of it takes as much memory as it can get."""
    rule = by_code()["TML101"]
    check = type(rule).check

    def hungry(self: object, facts: FileFacts) -> object:
        if "GREEDY" in facts.source.text:
            return [bytearray(50_000_000) for _ in range(1_000)]
        return check(rule, facts)

    monkeypatch.setattr(type(rule), "check", hungry)


@FORKS
@pytest.mark.usefixtures("greedy")
def test_what_takes_all_memory_costs_one_file(three: Path) -> None:
    (three / "m.py").write_bytes(b"import torch\nGREEDY = 1\n")
    report = checked(three, memory=200)
    assert told(report) == {"m.py": WHY + "checking it takes more than 200 MB (limit `memory`)"}
    assert found(report) == ["a.py", "z.py"]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by /proc")
def test_the_analysis_itself_looks_at_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchmemlint.engine import watching

    monkeypatch.setattr(watching, "_UNTIMED", 1)
    monkeypatch.setattr(watching, "_BETWEEN", 1)
    grown = iter(range(10**9, 10**11, 10**8))
    monkeypatch.setattr(watching, "_pages", lambda: (0, next(grown)))
    result = check_bytes(LEAK, tmp_path / "a.py", Profile(frozenset({"TML000", "TML101"}), limits=Limits(memory=500)))
    assert messages(result) == [WHY + "checking it takes more than 500 MB (limit `memory`)"]


# -- nesting -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("C(", ")"), ("{1: ", "}"), ("(", ",)")])
def test_deep_patterns_are_not_shown_to_libcst(tmp_path: Path, opening: str, closing: str) -> None:
    profile = Profile(frozenset({"TML000", "TML101"}))
    for depth in (60, 6):
        text = nested_patterns(depth, opening, closing) + LEAK
        assert [one.code for one in check_bytes(text, tmp_path / "a.py", profile).findings] == ["TML101"]
    within = LEAK.rstrip() + textwrap.indent(nested_patterns(60, opening, closing).decode(), "    ").encode()
    (found,) = check_bytes(within.replace(b"    import torch", b""), tmp_path / "a.py", profile).findings
    assert found.code == "TML101"
    assert found.fix is not None  # libcst reads the statement that the fix edits, not the patterns beside it


def test_deep_patterns_in_what_python_cannot_read(tmp_path: Path) -> None:
    text = nested_patterns(60) + b"def broken(:\n"
    result = check_bytes(text, tmp_path / "a.py", Profile(frozenset({"TML000"})))
    assert messages(result) == ["Syntax error: invalid syntax"]


def test_nesting_is_bounded_as_asked_for(tmp_path: Path) -> None:
    text = b"import torch\n\n\ndef f(x):\n    return " + b"-" * 40 + b"x\n"
    codes = frozenset({"TML000"})
    message = [
        one.message for one in check_bytes(text, tmp_path / "a.py", Profile(codes, limits=Limits(nesting=30))).findings
    ]
    assert message == [WHY + "it is nested 42 levels deep, which is more than 30 (limit `nesting`)"]
    assert check_bytes(text, tmp_path / "a.py", Profile(codes, limits=Limits(nesting=60))).findings == ()
    assert check_bytes(text, tmp_path / "a.py", Profile(codes, root=tmp_path, limits=Limits(nesting=60))).findings == ()


# -- size --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [True, False])
def test_what_is_too_large_is_not_read_to_its_end(three: Path, apart: bool) -> None:
    with (three / "m.py").open("wb") as file:
        file.write(b"import torch\n")
        file.truncate(10**12)  # bytes that the disk need not have
    with (three / "n.py").open("wb") as file:
        file.truncate(10**12)
    report = checked(three, apart=apart, size=0.5)
    assert told(report) == {"m.py": WHY + "it has more than 0.5 MB (limit `size`)"}
    assert found(report) == ["a.py", "z.py"]
    assert report.files_skipped == 1  # it does not speak of torch as far as it was read


def test_as_large_as_may_be_is_fine(tmp_path: Path) -> None:
    profile = Profile(frozenset({"TML000", "TML101"}), limits=Limits(size=0.001))
    text = LEAK + b"#" * (1_000 - len(LEAK))
    assert [one.code for one in check_bytes(text, tmp_path / "a.py", profile).findings] == ["TML101"]
    assert [one.code for one in check_bytes(text + b"#", tmp_path / "a.py", profile).findings] == ["TML000"]


# -- a worker's end ----------------------------------------------------------------------------------------------------


@FORKS
def test_a_worker_that_dies_costs_one_file(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_text = checking.check_text

    def fatal(text: str, *arguments: object, **options: object) -> object:
        if "FATAL" in text:
            faulthandler.disable()  # pytest's
            os.abort()
        return check_text(text, *arguments, **options)

    monkeypatch.setattr(checking, "check_text", fatal)
    (three / "m.py").write_bytes(b"import torch\nFATAL = 1\n")
    report = checked(three)
    assert len(report.errors) == 1
    assert report.errors[0].endswith("m.py: internal error: the worker process was killed by SIGABRT")
    assert found(report) == ["a.py", "z.py"]


def test_limits_of_tables() -> None:
    assert limits_of(read_limits({"time": 5, "size": 0.5})) == Limits(time=5, size=0.5)
    assert limits_of(None) == Limits()


def test_waiting_takes_no_processor_time() -> None:
    watch = Watch(Limits(time=0.5, memory=0))
    time.sleep(0.6)
    for _ in range(20):
        watch()
    begun = time.process_time()
    with pytest.raises(LimitReached, match=r"more than 0\.5 seconds"):
        _go_on(watch, begun + 5)
    assert time.process_time() - begun < 1


def _go_on(watch: Watch, until: float) -> None:
    while time.process_time() < until:
        watch()
