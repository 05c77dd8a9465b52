"""TML805 metric-never-reset."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class MetricNeverReset(TellingRule):
    """A metric that keeps what it is given is asked for its value after every epoch, and goes on with all of it."""

    def tell(self, told: Told) -> Finding:
        """Say that nothing lets go of what a metric keeps."""
        metric = told.callee_of(told.case.place).removesuffix(".update")
        return told.finding(
            self,
            f"`{metric}` keeps every batch: it is computed again and again, but never reset",
            [
                *told.links(told.case.graphs, "a metric of this class stores everything it is given"),
                *told.links(told.case.moves, "its value is computed here, which frees nothing"),
                *told.around("repeated by this loop"),
                *told.called(),
            ],
            hint=f"Call `{metric}.reset()` after `compute()`",
        )
