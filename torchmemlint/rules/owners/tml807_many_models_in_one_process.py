"""TML807 many-models-in-one-process."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.flow.fact.owners import Hoarding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class ManyModelsInOneProcess(TellingRule):
    """The networks of earlier folds or trials are still held while the next one trains, and nothing runs them again."""

    def tell(self, told: Told) -> Finding:
        """Say what holds the networks."""
        variable = told.about(Hoarding).variable
        return told.finding(
            self,
            f"`{variable}` keeps the network of every iteration in memory, and none is run again",
            [
                *told.links(dict.fromkeys((told.case.place, *told.case.graphs)), "created here in each iteration"),
                *told.around("each iteration creates another, and all are held when the loop ends"),
                *told.called(),
            ],
            hint=f"Keep only numbers in `{variable}`, and the `state_dict` of a network on the CPU",
        )
