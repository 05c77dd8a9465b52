"""Does the memory that a program holds grow from step to step, and by how much? Knows nothing of torch."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchmemlint.immutable import immutable

if TYPE_CHECKING:
    from torchmemlint.runtime.ledger import Ledger, Site

WARM_UP = 2
"""Steps left out at the start: the first allocates gradients and optimizer state, the second what they caused."""
FEWEST = 4
"""Steps that a fit needs beside the warm-up."""
_MOST = 200
"""Steps, the last ones, that are looked at for each line."""


@immutable()
class Growth:
    """A line through the bytes held at the ends of steps.

    `fit` is the share of the steps that the line explains (R², 1.0 for a straight line); 0 bytes fit by themselves.
    """

    bytes_per_step: float
    fit: float
    steps: int

    @property
    def enough(self) -> bool:
        """Whether there were steps enough to tell."""
        return self.steps >= FEWEST

    @property
    def certain(self) -> bool:
        """Whether there were steps enough, all in a line that rises."""
        return self.enough and self.bytes_per_step > 0 and self.fit > 0.9

    @property
    def certain_bytes(self) -> float:
        """Bytes per step where that is certain, else 0.0."""
        return self.bytes_per_step if self.certain else 0.0


NO_GROWTH = Growth(0.0, 1.0, 0)


def growth(held: Sequence[float], warm_up: int = WARM_UP) -> Growth:
    """The growth of a series of bytes, one number for each step's end."""
    bytes_held = held[warm_up:]
    if len(bytes_held) < 2:
        return Growth(0.0, 1.0, len(bytes_held))
    if len(set(bytes_held)) == 1:
        return Growth(0.0, 1.0, len(bytes_held))
    steps = range(len(bytes_held))
    slope, start = statistics.linear_regression(steps, bytes_held)
    mean = statistics.fmean(bytes_held)
    spread = sum((value - mean) ** 2 for value in bytes_held)
    missed = sum((value - start - slope * step) ** 2 for step, value in zip(steps, bytes_held, strict=True))
    return Growth(slope, 1 - missed / spread, len(bytes_held))


def growth_by_line(ledger: Ledger, marks: Sequence[int], device: str, block: int = 1) -> dict[Site, Growth]:
    """The lines whose bytes grow from mark to mark for certain."""
    marks = marks[WARM_UP:][-_MOST:]
    if len(marks) < FEWEST:
        return {}
    held = ledger.live_by_site_at(marks, device, block)
    grown = {site: growth(values, warm_up=0) for site, values in held.items()}
    return {site: one for site, one in grown.items() if one.certain}
