"""TML806 device-tensor-to-process."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class DeviceTensorToProcess(TellingRule):
    """Tensors of an accelerator go to another process by way of a queue."""

    def tell(self, told: Told) -> Finding:
        """Say what is put into a queue."""
        return told.finding(
            self,
            f"`{told.brief}` shares GPU memory that stays until the other process lets go of it",
            [
                *told.links(told.case.moves, "moved to the GPU here"),
                told.here("the queue hands the GPU memory itself to another process"),
                *told.around("repeated by this loop: as many as the queue holds are on the GPU"),
                *told.called(),
            ],
            hint="Put CPU tensors into the queue, and move them where they are used",
        )
