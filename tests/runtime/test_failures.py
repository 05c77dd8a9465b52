"""What looks at a program fails: the program goes on as it would, and the report says so."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.runtime.schemas import TRACE, validate  # noqa: E402
from torchmemlint.cli.main import main  # noqa: E402
from torchmemlint.runtime import track_memory  # noqa: E402
from torchmemlint.runtime.failures import Failures  # noqa: E402
from torchmemlint.runtime.loops import LoopWatch, StopRun  # noqa: E402

PROGRAM = """
    import threading
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    from torchmemlint.runtime import memory  # the program does here what a fault of this package would

    def fails(*_, **__):
        raise RuntimeError("no look here\\nsecond line")

    memory.look = fails

    def train(loader):
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for batch in loader:
                optimizer.zero_grad()
                model(batch).mean().backward()
                optimizer.step()
        print("steps done", len(list(optimizer.state)) >= 0)

    worker = threading.Thread(target=train, args=(DataLoader(torch.ones(40, 8), batch_size=2),))
    worker.start()
    worker.join()
    train(DataLoader(torch.ones(40, 8), batch_size=2))
    open("finished", "w").close()
"""


def test_the_program_goes_on_and_there_is_no_all_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(dedent(PROGRAM))
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "--isolated", "--backend", "cpu", "--color", "never", "train.py"]) == 2
    said, written = capfd.readouterr()
    assert written.count("steps done True") == 2  # the worker and the main thread came to their ends
    assert (tmp_path / "finished").exists()
    assert "No growth" not in said
    assert "what looks at the program failed" in said
    assert "RuntimeError: no look here (memory.py:" in said
    last = said.strip().splitlines()[-1]
    assert last.startswith("Growth cannot be told: what looks at the program failed")


@pytest.mark.slow
def test_the_failures_are_in_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(dedent(PROGRAM))
    monkeypatch.chdir(tmp_path)
    given = ["--isolated", "--backend", "cpu", "--quiet", "--output-format", "json", "--output-file", "said.json"]
    assert main(["trace", *given, "train.py"]) == 2
    said = json.loads(Path("said.json").read_text())
    validate(said, TRACE)
    assert said["run"]["failed_looks"] > 2
    assert said["run"]["failed_look"].startswith("RuntimeError: no look here (memory.py:")
    assert any(said["run"]["failed_look"] in note for note in said["notes"])


def test_the_order_to_stop_is_no_failure() -> None:
    failures = Failures()
    seen: list[str] = []

    def stops(_: object) -> None:
        raise StopRun

    def fails(_: object) -> None:
        raise KeyError

    with pytest.raises(StopRun):
        failures.tell([fails, seen.append, stops, seen.append], "turn")
    assert (failures.count, failures.first, seen) == (1, "KeyError", ["turn"])


def test_a_loop_goes_on_behind_an_observer_that_fails() -> None:
    failures = Failures()
    watch = LoopWatch(steps=3, seconds=60.0, now=lambda: 0, failures=failures)
    watch.on_turn.append(lambda entry: 1 / 0)  # type: ignore[arg-type, return-value]
    watch.on_leave.append(lambda entry: 1 / 0)  # type: ignore[arg-type, return-value]
    entry = watch.enter("a.py", 1)
    assert not watch.turn(entry)
    watch.leave(entry)
    assert (failures.count, entry.turns, watch.active) == (2, 1, [])


def train(**given: Any) -> int:
    """Train while memory is tracked, and return the steps."""
    done = 0
    with track_memory("cpu", holders=True, **given):
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(12):
            model(torch.ones(2, 4)).mean().backward()
            optimizer.step()
            done += 1
    return done


def test_in_your_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no look here")

    monkeypatch.setattr("torchmemlint.runtime.memory.look", fails)
    with pytest.warns(RuntimeWarning, match="what looks at the program failed"):
        assert train() == 12


def test_what_a_users_own_callback_raises_is_raised() -> None:
    def mine(series: str) -> None:
        raise LookupError(series)

    with pytest.raises(LookupError):
        train(on_step=mine)
