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
            f"`{told.text_of(told.case.place)}` keeps every iteration's result on the device, to be moved only later",
            [
                told.link(on_device, "the batches of this loop come to the device here"),
                told.link(told.case.place, "keeps each result there"),
                told.link(to_host, "all of them go to the host here"),
                *told.called(),
            ],
            fix=Fix("Bring each result to the host", Applicability.UNSAFE, edits) if edits else None,
        )
