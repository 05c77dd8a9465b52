"""What the births of the living say: leaks, and what looks like them. A turn lasts ten events."""

from __future__ import annotations

import pytest

from torchmemlint.runtime.ledger import Ledger, Site
from torchmemlint.runtime.survivors import Accrual, accrual, best, eligible_series, swelling

TURNS = 40
MARKS = [10 * turn for turn in range(1, TURNS + 1)]


def born_in(*turns: int, nbytes: int = 8) -> list[tuple[int, int]]:
    return [(10 * turn + 5, nbytes) for turn in turns]


def test_a_leak_is_exact() -> None:
    found = accrual("optimizer 1", MARKS, born_in(*range(TURNS)))
    assert found is not None
    assert (found.bytes_per_turn, found.storages_per_turn, found.steady, found.regularity) == (8, 1, True, 1.0)


def test_a_leak_in_every_fifth_turn_is_a_mean() -> None:
    found = accrual("optimizer 1", MARKS, born_in(*range(0, TURNS, 5), nbytes=50))
    assert found is not None
    assert found.bytes_per_turn == pytest.approx(10, rel=0.1)
    assert not found.steady


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param(range(20, TURNS), id="a bounded queue, or a list cleared half-way"),
        pytest.param(range(20), id="a cache that is warm"),
        pytest.param([10], id="state made late"),
        pytest.param([0, 1], id="set-up"),
        pytest.param(range(36, TURNS), id="the last batches"),
        pytest.param([2, 3, 4, 5, 6, 8, 9, 11, 14, 19, 27], id="a cache of lengths, new ones getting rarer"),
        pytest.param([5, 15], id="too few"),
    ],
)
def test_look_alikes(turns: list[int]) -> None:
    assert accrual("optimizer 1", MARKS, born_in(*turns)) is None


def test_too_short_a_run_says_nothing() -> None:
    assert accrual("optimizer 1", MARKS[:6], born_in(*range(6))) is None


def test_a_value_made_larger() -> None:
    found = swelling("loop a:1", MARKS, [16 * turn for turn in range(TURNS)])
    assert found is not None
    assert found.bytes_per_turn == 16
    assert swelling("loop a:1", MARKS, [16 * (turn % 10) for turn in range(TURNS)]) is None


def ledger_of(**series: list[int]) -> Ledger:
    ledger = Ledger()
    marks = sorted((event, name.replace("_", " ")) for name, events in series.items() for event in events)
    for event, name in marks:
        while ledger.now < event:
            ledger.allocate(4, "cpu", Site("a.py", 1, "f"), "aten.add", in_backward=False)
        ledger.mark(name)
    return ledger


def test_a_loop_before_the_training_does_not_count() -> None:
    training = list(range(100, 300, 10))
    ledger = ledger_of(loop_build=list(range(5, 50, 5)), optimizer_1=training, loop_train=training)
    assert list(eligible_series(ledger)) == ["optimizer 1", "loop train"]


def test_of_loops_alone_the_main_one_counts_and_what_is_in_it() -> None:
    inner = [event for turn in range(100, 300, 10) for event in (turn + 2, turn + 4)]
    ledger = ledger_of(loop_data=list(range(5, 50, 5)), loop_outer=list(range(100, 300, 10)), loop_inner=inner)
    assert list(eligible_series(ledger)) == ["loop outer", "loop inner"]


def test_the_series_that_says_most() -> None:
    one, more, other = (Accrual(name, 8, 1, turns, 1.0, True) for name, turns in (("a", 7), ("b", 20), ("c", 9)))
    assert best([None, one, other]) is one
    assert best([one, more]) is more
    vague = Accrual("d", 3.5, 1, 30, 1.0, False)
    assert best([vague, one]) is one
    assert best([vague]) is vague
    assert best([None]) is None


def test_a_loop_in_which_nothing_is_made() -> None:
    ledger = ledger_of(loop_outer=[0] * TURNS)
    assert list(eligible_series(ledger)) == ["loop outer"]
