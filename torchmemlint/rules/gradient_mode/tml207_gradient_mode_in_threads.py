"""TML207 gradient-mode-in-threads."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class GradientModeInThreads(TellingRule):
    """Gradients are turned off in one thread, and networks run in others."""

    def tell(self, told: Told) -> Finding:
        """Say which pass in a thread records a graph."""
        passes = [told.link(place, "runs with gradients enabled in the other thread") for place in told.case.graphs]
        return told.finding(
            self,
            f"`{told.brief}` runs in another thread, where gradients are enabled again",
            [told.here("gradients are off here, in this thread alone"), *passes, *told.called()],
            hint="Turn gradients off in the function that the thread runs",
        )
