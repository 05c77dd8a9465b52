"""The largest batch that fits a card."""

from __future__ import annotations

from collections.abc import Callable

MOST = 1 << 16
"""Batches are not looked for beyond so many examples."""
PATIENCE = 6
"""Runs after which every other one halves what is left instead of trusting the line."""


def largest_batch(bytes_of: Callable[[int], int | None], capacity: int, start: int = 1) -> int | None:
    """The most examples whose step stays within a capacity, found by running steps of other batches.

    `bytes_of(batch)` gives what a batch takes, None where it cannot be run. Memory grows about in a line with the
    batch, so the next to try is where the line through two meets the capacity (halving the rest from time to time, for
    memory that grows otherwise). The answer was run and fits, one example more does not; None where not one fits.
    """
    measured: dict[int, int | None] = {}

    def fits(batch: int) -> bool:
        if batch not in measured:
            measured[batch] = bytes_of(batch)
        took = measured[batch]
        return took is not None and took <= capacity

    low, high = 0, MOST + 1  # the largest that is known to fit, the smallest that is known not to
    guess = max(1, min(start, MOST))
    while high - low > 1:
        if fits(guess):
            low = guess
        else:
            high = guess
        halve = len(measured) > PATIENCE and len(measured) % 2 == 0
        guess = (low + high) // 2 if halve else _next(measured, capacity, low, high)
    return low or None


def _next(measured: dict[int, int | None], capacity: int, low: int, high: int) -> int:
    """The batch to try next: on the line through two that were run, but always between the bounds."""
    known = sorted((batch, took) for batch, took in measured.items() if took is not None)
    if len(known) < 2:
        return min(max(low * 2, 1), high - 1) if low else max(1, high // 2)
    # The two nearest to the capacity: far from it the line is another one, of parameters and not of activations.
    (first, small), (second, large) = sorted(sorted(known, key=lambda one: abs(one[1] - capacity))[:2])
    each = (large - small) / (second - first)
    if each <= 0:
        return min(max(low * 2, low + 1), high - 1)
    wanted = second + int((capacity - large) // each)
    if wanted <= low:
        return low + 1
    return min(wanted, high - 1)
