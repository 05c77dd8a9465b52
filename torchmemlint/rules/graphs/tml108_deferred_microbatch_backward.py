"""TML108 deferred-microbatch-backward."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.flow.domain.manners import How
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class DeferredMicrobatchBackward(TellingRule):
    """The losses of several batches are summed and differentiated in one backward."""

    def tell(self, told: Told) -> Finding:
        """Say what is kept until backward runs."""
        case = told.case
        assert case.kept is not None
        verb = "sums" if case.how is How.SUM else "collects"
        return told.finding(
            self,
            f"`{told.text_of(case.place)}` waits for several batches: all their graphs are in GPU memory at once",
            [
                *told.begun(),
                told.link(case.kept, f"{verb} the losses, with their graphs"),
                told.link(case.place, "backward runs through the graphs of all iterations"),
                *told.called(),
            ],
            hint="Call `backward()` on each loss inside the loop (for a mean, divide it by the number of steps)",
        )
