"""The runs of a verification, with what carries them out replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from torchmemlint.runtime import runs
from torchmemlint.runtime.commands import Options
from torchmemlint.runtime.order import Order, Program
from torchmemlint.runtime.results import End, RunResult
from torchmemlint.runtime.runs import Runs, Wanted

FINISHED = RunResult(End.FINISHED, seconds_per_step=0.5)


class Told:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def begin(self, label: str, number: int, of: int | None) -> None:
        self.lines.append(f"{number} of {of}: {label}")

    def steps(self, number: int, made: int) -> None:
        self.lines.append(f"{number} made {made}")

    def end(self, number: int) -> None:
        self.lines.append(f"{number} ended")


class Machine:
    """Stands in for the processes: each run ends as its overlay says, the last one of several first."""

    def __init__(self, ends: dict[str, End]) -> None:
        self.ends = ends
        self.at_once: list[int] = []

    def __call__(
        self,
        orders: Sequence[Order],
        at_once: int,
        begins: Callable[[int], None],
        made: Callable[[int, int], None],
        ends: Callable[[int], None],
    ) -> list[RunResult]:
        self.at_once.append(at_once)
        for number in range(len(orders)):
            begins(number)
        for number in reversed(range(len(orders))):
            made(number, 3)
            ends(number)
        beside = at_once > 1
        told = [self.ends.get(order.overlay.get("a.py", ""), End.FINISHED) for order in orders]
        return [replace(FINISHED, end=end if beside else End.FINISHED, peak=len(told)) for end in told]


def made_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **ends: End) -> tuple[Runs, Told, Machine]:
    told, machine = Told(), Machine(ends)
    monkeypatch.setattr(runs, "launch_all", machine)
    return Runs(Program("a.py", directory=str(tmp_path)), Options(), told, tmp_path), told, machine


def wanted(name: str) -> Wanted:
    return Wanted(f"with {name}", (("a.py", name),))


def test_runs_side_by_side_are_numbered_in_order_and_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, told, machine = made_runs(tmp_path, monkeypatch)
    of.make("as it is")
    of.planned = 4
    assert of.ahead([wanted("x"), wanted("y"), replace(wanted("x"), label="the same"), wanted("z")], 2, End.FINISHED)
    assert [one for one in told.lines if ":" in one] == [
        "1 of None: as it is",
        "2 of 4: with x",
        "3 of 4: with y",
        "4 of 4: with z",
    ]
    assert told.lines[-2:] == ["2 made 3", "2 ended"]
    assert of.get(wanted("y")).result.seconds_per_step is None  # of all that shared the machine
    assert of.get(wanted("w")).result.seconds_per_step == 0.5
    assert machine.at_once == [1, 2, 1]
    assert told.lines[-3] == "5 of 5: with w"


def test_one_run_has_the_machine_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, told, machine = made_runs(tmp_path, monkeypatch)
    assert not of.ahead([wanted("x"), wanted("x")], 8, End.FINISHED)
    assert not of.ahead([wanted("x"), wanted("y")], 1, End.FINISHED)
    assert not told.lines
    assert of.get(wanted("x")).result.seconds_per_step == 0.5
    assert machine.at_once == [1]


def test_what_ends_badly_beside_others_is_made_again_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, _, machine = made_runs(tmp_path, monkeypatch, slow=End.TIME, large=End.KILLED, wrong=End.FAILED)
    names = ["slow", "large", "wrong", "good"]
    of.ahead([wanted(name) for name in names], 4, End.FINISHED)
    assert [of.get(wanted(name)).result.end for name in names] == [End.FINISHED] * 4
    assert machine.at_once == [4, 1, 1, 1]


def test_what_ends_as_usual_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, _, machine = made_runs(tmp_path, monkeypatch, fails=End.FAILED)
    of.ahead([wanted("fails"), wanted("good")], 2, End.FAILED)
    assert of.get(wanted("fails")).result.end is End.FAILED
    assert machine.at_once == [2]
