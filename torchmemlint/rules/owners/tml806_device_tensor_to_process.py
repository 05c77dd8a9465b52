"""TML806 device-tensor-to-process."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Evidence, Finding, Fix, Severity
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class DeviceTensorToProcess(TellingRule):
    """Tensors of an accelerator go to another process by way of a queue."""

    def tell(self, told: Told) -> Finding:
        """Say what is put into a queue."""
        return told.finding(
            self,
            f"`{told.text_of(told.case.place)}` shares GPU memory that stays until the other process lets go of it",
            _evidence(told),
            severity=Severity.ADVICE if told.case.advice else None,
            fix=Fix("Put CPU tensors into the queue, and move them where they are used", Applicability.HINT),
        )


def _evidence(told: Told) -> Iterator[Evidence]:
    for place in told.case.moves:
        yield told.link(place, "moved to the GPU here")
    yield told.link(told.case.place, "the queue hands the GPU memory itself to another process")
    yield from told.around("repeated by this loop: as many as the queue holds are on the GPU")
    yield from told.called()
