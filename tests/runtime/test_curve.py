"""The curve of live bytes, and its drawing."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from torchmemlint.report.page.chart import share, stacked
from torchmemlint.report.page.page import KINDS
from torchmemlint.runtime.curve import Curve, curve
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.ledger import Ledger, Site

HERE = Site("train.py", 1, "main")


def ledger(sizes: list[int], lives: int = 3) -> Ledger:
    """A run that makes storages of these sizes, each freed after so many more."""
    made = Ledger()
    alive: list[int] = []
    for nbytes in sizes:
        index = made.allocate(nbytes, "cpu", HERE, "aten::ones", False)
        made.claim(index, Kind.SAVED if nbytes % 2 else Kind.PARAMETER)
        alive.append(index)
        if len(alive) > lives:
            made.free(alive.pop(0))
    return made


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=200), st.integers(1, 50))
def test_no_peak_is_lost(sizes: list[int], points: int) -> None:
    made = ledger(sizes)
    drawn = curve(made, "cpu", [], points)
    assert len(drawn.events) <= points + 1
    assert max(drawn.totals) == made.peaks.get("cpu", 0)
    assert list(drawn.events) == sorted(set(drawn.events))
    assert Curve.from_json(json.loads(json.dumps(drawn.to_json()))) == drawn


def test_every_kind_has_its_band() -> None:
    made = ledger([1000, 1001, 2000, 2001])
    chart = stacked(curve(made, "cpu", [2, 4]), KINDS)
    assert chart is not None
    assert [area.label for area in chart.areas] == ["parameter", "saved activation"]
    assert [step.label for step in chart.steps] == ["end of step 1", "end of step 2"]
    assert chart.peak.label == "peak 5.9 KiB"
    for area in chart.areas:
        for point in area.points.split():
            across, up = map(float, point.split(","))
            assert chart.left <= across <= chart.right
            assert chart.top <= up <= chart.bottom


def test_nothing_to_draw() -> None:
    assert stacked(Curve(), KINDS) is None
    assert stacked(curve(Ledger(), "cpu", []), KINDS) is None


def test_a_long_run_marks_some_steps() -> None:
    chart = stacked(curve(ledger([512] * 3000), "cpu", list(range(0, 6000, 2))), KINDS)
    assert chart is not None
    assert len(chart.steps) <= 200


def test_bars() -> None:
    assert share(0, 10) == 0
    assert share(10, 10) == share(11, 10) == 100
    assert share(1, 10**9) == 0.5
    assert share(5, 0) == 0
