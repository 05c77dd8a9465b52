"""Work in forked processes that rests on other work."""

import os
import signal
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchmemlint.engine.team import lanes, spread

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork")

NEEDS = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": []}


def _joined(piece: str, told: list[str]) -> str:
    return piece + "".join(sorted(told))


def done(work, needs=NEEDS, processes: int = 2) -> dict:
    return dict(spread(needs, work, str.upper, processes))


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_each_is_told_what_it_needs(processes: int) -> None:
    assert done(_joined, processes=processes) == {"a": "a", "e": "e", "b": "bA", "c": "cA", "d": "dBACA"}


def _fails_at_b(piece: str, told: list[str]) -> str:
    if piece == "b":
        raise ValueError
    return _joined(piece, told)


def _dies_at_b(piece: str, told: list[str]) -> str:
    if piece == "b":
        os.kill(os.getpid(), signal.SIGKILL)
    return _joined(piece, told)


@pytest.mark.parametrize("work", [_fails_at_b, _dies_at_b], ids=["raises", "dies"])
def test_what_fails_is_left_out_with_what_needs_it(work) -> None:
    found = done(work)
    assert "b" not in found
    assert "d" not in found
    assert found["a"] == "a"


def test_one_that_fails_does_not_stop_the_others_of_its_process() -> None:
    assert done(_fails_at_b, processes=1) == {"a": "a", "e": "e", "c": "cA"}


def test_whoever_stops_asking_ends_the_processes() -> None:
    def by(piece: str, told: list[str]) -> int:
        if piece == "e":
            time.sleep(60)
        return os.getpid()

    found = spread(NEEDS, by, str, 2)
    begun = time.monotonic()
    _, first = next(found)
    found.close()
    assert time.monotonic() - begun < 20
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_nothing_to_do() -> None:
    assert done(_joined, needs={}) == {}


@st.composite
def _needs(draw: st.DrawFn) -> dict[int, list[int]]:
    size = draw(st.integers(0, 12))
    return {n: sorted(draw(st.sets(st.integers(0, n - 1), max_size=3))) if n else [] for n in range(size)}


@settings(deadline=None)
@given(_needs(), st.integers(1, 4))
def test_lanes_hold_all_once_and_never_wait_for_each_other(needs: dict[int, list[int]], number: int) -> None:
    left = [list(lane) for lane in lanes(needs, number)]
    assert sorted(piece for lane in left for piece in lane) == sorted(needs)
    ended: set[int] = set()
    while any(left):
        ready = [lane for lane in left if lane and ended.issuperset(needs[lane[0]])]
        assert ready
        for lane in ready:
            ended.add(lane.pop(0))
