"""TML503 gc-collect-in-loop."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class GcCollectInLoop(TellingRule):
    """The garbage collector looks at every object of the program for every batch."""

    def tell(self, told: Told) -> Finding:
        """Say that all garbage is collected for every batch."""
        return told.finding(
            self,
            f"`{told.brief}` runs on every batch, and visits every Python object each time",
            [*told.each(), told.here("a full collection runs here"), *told.called()],
            hint="Remove `gc.collect()`, or call it once per epoch",
        )
