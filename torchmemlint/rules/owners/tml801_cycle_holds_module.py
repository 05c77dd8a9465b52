"""TML801 cycle-holds-module."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.flow.fact.owners import Circling
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class CycleHoldsModule(TellingRule):
    """An object that holds itself, and a network, is made again and again: each waits for the garbage collector."""

    def tell(self, told: Told) -> Finding:
        """Say by which way it holds itself."""
        circling = told.about(Circling)
        what = "its network stays"
        hint = "Break the cycle: look the method up by name, hold a `weakref.ref`, or clear the reference at the end"
        if circling.closure:
            what, hint = "its tensors stay", "Define the function outside and pass what it needs, or use a loop"
        return told.finding(
            self,
            f"reference cycle `{circling.way}`: {what} in memory until the garbage collector runs",
            [
                told.here("created here, and part of a reference cycle"),
                *told.links(told.case.moves, "this closes the cycle"),
                *told.links(told.case.graphs, "created here, and held by the cycle"),
                *told.around("another one is created in each iteration"),
                *told.called(),
            ],
            hint=hint,
        )
