"""TML508 results-collected-on-device."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.detaching import bring_to_host
from torchmemlint.rules.told import Told


class ResultsCollectedOnDevice(TellingRule):
    """The results of a whole pass over the data wait on the device and go to the host only after it."""

    def tell(self, told: Told) -> Finding:
        """Say what is filled on the device, and wanted on the host."""
        on_device, to_host = told.case.moves
        edits = bring_to_host(told.piece, told.span) if told.piece is not None else ()
        return told.finding(
            self,
            f"`{told.brief}` keeps every iteration's result on the GPU until the end",
            [
                told.link(on_device, "the batches of this loop are moved to the GPU here"),
                told.here("keeps each result on the GPU"),
                told.link(to_host, "all of them are moved to the CPU here"),
                *told.called(),
            ],
            fix=Fix("Move each result to the CPU", Applicability.UNSAFE, edits) if edits else None,
        )
