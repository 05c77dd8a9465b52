"""TML114 view-keeps-storage."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Severity, Span
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class ViewKeepsStorage(TellingRule):
    """A loop collects views of large tensors, and with them those."""

    def tell(self, told: Told) -> Finding:
        """Say what is kept by a view."""
        text, span = told.text_of(told.case.place), told.span
        certain = not told.case.doubts
        return told.finding(
            self,
            f"`{text}` is a view: keeping it keeps the whole tensor in memory",
            _evidence(told),
            severity=Severity.ADVICE if told.case.advice else Severity.WARNING,
            fix=Fix(
                f"Store a copy: `{text}.clone()`",
                Applicability.SAFE if certain else Applicability.UNSAFE,
                (Edit(Span(span.end, span.end), ".clone()"),),
            ),
        )


def _evidence(told: Told) -> Iterator[Evidence]:
    for made in told.case.graphs:
        yield told.link(made, "returns the whole tensor, a new one in each iteration")
    for place in told.case.moves:
        yield told.link(place, "the batches of this loop are moved to the device here")
    if told.case.within is not None and told.case.within != told.case.place:
        yield told.link(told.case.within, "the view is taken here")
    yield from told.around("one is kept for each iteration")
    yield from told.called()
