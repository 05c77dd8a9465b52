"""TML112 create-graph-cycle."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class CreateGraphCycle(TellingRule):
    """Gradients keep a graph that leads back to their parameters."""

    def tell(self, told: Told) -> Finding:
        """Say that the graph of each iteration's gradients stays."""
        return told.finding(
            self,
            f"`{told.brief}` stores a graph in `.grad` that nothing resets, in every iteration",
            [
                *told.begun(),
                told.here("tensor, `.grad` and graph hold one another: no garbage collector frees them"),
                *told.around("nothing in this loop sets `.grad` to None or zeroes it"),
                *told.called(),
            ],
            hint="Compute the gradients with `autograd.grad`, or set `.grad = None` after use",
        )
