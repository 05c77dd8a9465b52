"""TML112 create-graph-cycle."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Evidence, Finding, Fix
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class CreateGraphCycle(TellingRule):
    """Gradients keep a graph that leads back to their parameters."""

    def tell(self, told: Told) -> Finding:
        """Say that the graph of each iteration's gradients stays."""
        return told.finding(
            self,
            f"`{told.text_of(told.case.place)}` stores a graph in `.grad` that nothing resets, in every iteration",
            _evidence(told),
            fix=Fix("Compute the gradients with `autograd.grad`, or set `.grad = None` after use", Applicability.HINT),
        )


def _evidence(told: Told) -> Iterator[Evidence]:
    yield from told.begun()
    yield told.link(told.case.place, "tensor, `.grad` and graph hold one another: no garbage collector frees them")
    yield from told.around("nothing in this loop sets `.grad` to None or zeroes it")
    yield from told.called()
