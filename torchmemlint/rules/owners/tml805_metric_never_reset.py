"""TML805 metric-never-reset."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Evidence, Finding, Fix
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
            _evidence(told),
            fix=Fix(f"Call `{metric}.reset()` after `compute()`", Applicability.HINT),
        )


def _evidence(told: Told) -> Iterator[Evidence]:
    for made in told.case.graphs:
        yield told.link(made, "a metric of this class stores everything it is given")
    for asked in told.case.moves:
        yield told.link(asked, "its value is computed here, which frees nothing")
    yield from told.around("repeated by this loop")
    yield from told.called()
