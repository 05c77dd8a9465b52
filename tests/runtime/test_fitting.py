"""The search for the largest batch, without any model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmemlint.runtime.estimates.fitting import MOST, largest_batch


@given(st.integers(0, 10**9), st.integers(1, 10**8), st.integers(1, 10**11), st.integers(1, 4096))
def test_a_straight_line(base: int, each: int, capacity: int, start: int) -> None:
    right = min(MOST, (capacity - base) // each)
    assert largest_batch(lambda batch: base + each * batch, capacity, start) == (right if right >= 1 else None)


@given(st.integers(1, 500), st.integers(1, 64))
def test_steps_of_segments(each: int, start: int) -> None:
    """Reserved memory grows in steps, as the allocator takes whole segments."""

    def reserved(batch: int) -> int:
        return -(-each * batch // 1000) * 1000

    found = largest_batch(reserved, 40_000, start)
    assert found is not None
    assert reserved(found) <= 40_000 < reserved(found + 1)


def test_few_runs() -> None:
    runs: list[int] = []

    def took(batch: int) -> int:
        runs.append(batch)
        return 600_000_000 + 950_000_000 * batch + (batch % 7) * 2_000_000

    assert largest_batch(took, 40 * 2**30, 8) == 44
    assert len(runs) == len(set(runs)) <= 6


def test_some_batches_cannot_be_run() -> None:
    assert largest_batch(lambda batch: None if batch == 1 else 10 * batch, 100, 2) == 10
    assert largest_batch(lambda batch: None, 100, 8) is None


@pytest.mark.parametrize("start", [1, MOST, MOST * 2])
def test_nothing_is_too_small(start: int) -> None:
    assert largest_batch(lambda batch: 5, 100, start) == MOST
