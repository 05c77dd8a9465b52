"""TML503 gc-collect-in-loop."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class GcCollectInLoop(TellingRule):
    """The garbage collector looks at every object of the program for every batch."""

    def tell(self, told: Told) -> Finding:
        """Say that all garbage is collected for every batch."""
        return told.finding(
            self,
            f"`{told.text_of(told.case.place)}` runs on every batch, and visits every Python object each time",
            [*told.each(), told.link(told.case.place, "a full collection runs here"), *told.called()],
            fix=Fix("Remove `gc.collect()`, or call it once per epoch", Applicability.HINT),
        )
