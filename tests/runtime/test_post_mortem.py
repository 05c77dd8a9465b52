"""`TORCHMEMLINT_OOM=1`: what torch calls when it was imported costs nothing where nobody asks."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from torchmemlint import post_mortem

PROGRAM = """
import os, sys, time, typing  # torch has imported them before
before = set(sys.modules)
start = time.process_time()
from torchmemlint.post_mortem import begin
begin()
seconds = time.process_time() - start
print(seconds, *sorted(one for one in set(sys.modules) - before if one.startswith(("torch", "click"))))
"""


@pytest.mark.parametrize("value", [None, "0"])
def test_without_the_variable_it_costs_about_a_millisecond_at_most(value: str | None) -> None:
    around = {name: kept for name, kept in os.environ.items() if name != post_mortem.VARIABLE}
    around |= {post_mortem.VARIABLE: value} if value is not None else {}
    times = []
    for _ in range(8):
        run = subprocess.run([sys.executable, "-c", PROGRAM], env=around, capture_output=True, text=True, check=True)
        seconds, *modules = run.stdout.split()
        assert modules == ["torchmemlint", "torchmemlint.post_mortem"]
        times.append(float(seconds))
    assert min(times) < 0.002  # 0.4 ms, measured on 2026-11-30


def test_torch_is_told_of_it() -> None:
    found = [one for one in entry_points(group="torch.backends") if one.name == "torchmemlint"]
    if not found:
        pytest.skip("torchmemlint is not installed here")
    assert found[0].load() is post_mortem.begin


def test_what_fails_here_does_not_stop_torch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_report: str | None) -> None:
        raise OSError("no room")

    monkeypatch.setenv(post_mortem.VARIABLE, "1")
    monkeypatch.setattr("torchmemlint.cli.explaining.explain_at_exit", fails)
    post_mortem.begin()
    assert "nothing is recorded: OSError('no room')" in capsys.readouterr().err
