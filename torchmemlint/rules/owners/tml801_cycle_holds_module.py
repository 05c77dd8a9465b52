"""TML801 cycle-holds-module."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Evidence, Finding, Fix
from torchmemlint.flow.fact.owners import Circling
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class CycleHoldsModule(TellingRule):
    """An object that holds itself, and a network, is made again and again: each waits for the garbage collector."""

    def tell(self, told: Told) -> Finding:
        """Say by which way it holds itself."""
        circling = told.about(Circling)
        what = "its tensors stay" if circling.closure else "its network stays"
        return told.finding(
            self,
            f"reference cycle `{circling.way}`: {what} in memory until the garbage collector runs",
            _evidence(told),
            fix=Fix(_title(circling), Applicability.HINT),
        )


def _title(circling: Circling) -> str:
    if circling.closure:
        return "Define the function outside and pass what it needs, or use a loop"
    return "Break the cycle: look the method up by name, hold a `weakref.ref`, or clear the reference at the end"


def _evidence(told: Told) -> Iterator[Evidence]:
    yield told.link(told.case.place, "created here, and part of a reference cycle")
    for place in told.case.moves:
        yield told.link(place, "this closes the cycle")
    for made in told.case.graphs:
        yield told.link(made, "created here, and held by the cycle")
    yield from told.around("another one is created in each iteration")
    yield from told.called()
