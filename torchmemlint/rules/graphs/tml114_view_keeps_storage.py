"""TML114 view-keeps-storage."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Span
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class ViewKeepsStorage(TellingRule):
    """A loop collects views of large tensors, and with them those."""

    def tell(self, told: Told) -> Finding:
        """Say what is kept by a view."""
        text, span = told.brief, told.span
        certain = not told.case.doubts
        return told.finding(
            self,
            f"`{text}` is a view: keeping it keeps the whole tensor in memory",
            [
                *told.links(told.case.graphs, "returns the whole tensor, a new one in each iteration"),
                *told.links(told.case.moves, "the batches of this loop are moved to the device here"),
                *told.links({told.case.within} - {told.case.place}, "the view is taken here"),
                *told.around("one is kept for each iteration"),
                *told.called(),
            ],
            fix=Fix(
                f"Store a copy: `{text}.clone()`",
                Applicability.SAFE if certain else Applicability.UNSAFE,
                (Edit(Span(span.end, span.end), ".clone()"),),
            ),
        )
