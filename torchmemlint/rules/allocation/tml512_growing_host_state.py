"""TML512 growing-host-state."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class GrowingHostState(TellingRule):
    """The whole output of each request is kept, of which only a part is read."""

    def tell(self, told: Told) -> Finding:
        """Say what keeps the outputs, and what makes them large."""
        links = [told.link(step, "every step of this loop adds tensors to it") for step in told.case.graphs]
        links += [told.link(call, "its result holds a tensor of each layer or token") for call in told.case.moves]
        return told.finding(
            self,
            f"`{told.brief}` keeps the whole output of every request: the tensors of each step",
            [told.here("nothing reads these tensors afterwards"), *links, *told.called()],
            hint="Store only what is read later: the text, or the sequence on the CPU",
        )
