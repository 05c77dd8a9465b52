"""What becomes of each test, and which lines it runs: the part of `tools/other_suites.py` in the tests' process.

    python -m pytest -p suite_watch ...          # a plugin
    python suite_watch.py example.py [ARGUMENT]  # an example that is a test

`SUITE_REPORT` names the file that is written, `SUITE_FILES` those whose lines are watched (separated as paths are).
What runs while modules are imported, and in fixtures that several tests share, is said of the test "".
"""

from __future__ import annotations

import json
import os
import runpy
import shlex
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_RANKS = ["", PASSED, SKIPPED, FAILED]
_FILES = frozenset(filter(None, os.environ.get("SUITE_FILES", "").split(os.pathsep)))
_outcomes: dict[str, str] = {}
_ran: dict[str, dict[int, set[str]]] = {file: defaultdict(set) for file in _FILES}
_test = ""


@cache
def _lines(file: str) -> dict[int, set[str]] | None:
    return _ran.get(str(Path(file).resolve()))


def _called(frame: FrameType, event: str, argument: object) -> Any:
    return None if _lines(frame.f_code.co_filename) is None else _reached


def _reached(frame: FrameType, event: str, argument: object) -> Any:
    if event == "line" and (lines := _lines(frame.f_code.co_filename)) is not None:
        lines[frame.f_lineno].add(_test)
    return _reached


def _now(test: str) -> None:
    global _test
    _test = test


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What runs from now on belongs to a test."""
    _now(item.nodeid)
    try:
        return (yield)
    finally:
        _now("")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    """A fixture that is shared is made for all tests."""
    test = _test
    if fixturedef.scope != "function":
        _now("")
    try:
        return (yield)
    finally:
        _now(test)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the worst that is said of a test."""
    if report.when == "call" or report.outcome != PASSED:
        _outcomes[report.nodeid] = max(_outcomes.get(report.nodeid, ""), report.outcome, key=_RANKS.index)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be imported is a test that fails."""
    if report.failed:
        _outcomes[report.nodeid] = FAILED


def pytest_unconfigure() -> None:
    """Write what is known."""
    sys.settrace(None)
    ran = {file: {line: sorted(by) for line, by in lines.items()} for file, lines in _ran.items()}
    Path(os.environ["SUITE_REPORT"]).write_text(json.dumps({"outcomes": _outcomes, "ran": ran}), encoding="utf-8")


if _FILES:
    threading.settrace(_called)
    sys.settrace(_called)

if __name__ == "__main__":
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    example = shlex.join(sys.argv)
    _now(example)
    _outcomes[example] = FAILED
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
        _outcomes[example] = PASSED
    except SystemExit as left:
        _outcomes[example] = FAILED if left.code else PASSED
    finally:
        pytest_unconfigure()
