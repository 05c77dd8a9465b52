"""The largest batch that fits a card."""

from __future__ import annotations

from collections.abc import Callable

from torchmemlint.runtime.estimates.plan import Plan

MOST = 1 << 20
"""Batches are not looked for beyond so many examples."""


def largest_batch(reserved: Callable[[Plan], int | None], plan: Plan, capacity: int) -> int | None:
    """The most examples whose step stays within a capacity (bytes reserved), found by running steps.

    `reserved(plan)` gives the bytes of a plan, None where the card's own limit was passed. The first guess is a
    straight line through two batches; then the guess is tried, and halved in on. None where not even one fits.
    """

    def fits(batch: int) -> bool:
        took = reserved(plan.with_batch(batch))
        return took is not None and took <= capacity

    if not fits(1):
        return None
    small, large = reserved(plan.with_batch(2)), reserved(plan.with_batch(8))
    if small is None or large is None:
        guess = 1
    else:
        each = max((large - small) / 6, 1.0)
        guess = max(1, min(MOST, int((capacity - small) / each) + 2))
    low, high = 1, None
    while high is None:
        if fits(guess):
            low = guess
            if low >= MOST:
                return MOST
            guess = min(MOST, low + max(1, low // 8))
        else:
            high = guess
    while high - low > max(1, low // 64):
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
