"""TML407 oversized-worker-pool."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.flow.fact.details import Feeding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class OversizedWorkerPool(TellingRule):
    """A loader starts more workers than there are CPUs for them."""

    def tell(self, told: Told) -> Finding:
        """Say how many workers there are."""
        feeding = told.about(Feeding)
        default = " by default" if feeding.chosen else ""
        again = ", in each process of distributed training" if feeding.ranks else ""
        ready = ", each with memory of its own and batches that it keeps ready"
        if feeding.ahead is not None:
            ready = f", and keep {feeding.ahead} batches ready"
        links = []
        if feeding.counted is not None:
            counts = f"`{feeding.workers}` counts all CPUs, also those that this process may not use"
            links.append(told.link(feeding.counted, counts))
        number = f"{feeding.workers} workers" if feeding.counted is None else "a worker for each CPU"
        return told.finding(
            self,
            f"`{told.callee_of(told.case.place)}` starts {number}{default}{again}",
            [*links, told.here(f"the workers are started here{ready}"), *told.called()],
            hint="Start only as many workers as keep the GPU busy",
        )
