"""TML803 hook-leftovers."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Evidence, Finding, Fix, Severity
from torchmemlint.flow.fact.owners import Remaining
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class HookLeftovers(TellingRule):
    """What hooks put onto a module or a list stays there when no hook is left to take it away."""

    def tell(self, told: Told) -> Finding:
        """Say what stays, and since when."""
        holder, popped = (about := told.about(Remaining)).holder, about.popped
        if popped:
            message = f"`{holder}` grows with each pass that has no backward: only a backward hook takes from it"
            title = "Push only where a backward follows: `if torch.is_grad_enabled():`"
        else:
            message = f"the hook is removed, but `{holder}` keeps what it has stored, on every module that it was for"
            title = f"Delete `{holder}` where the hooks are removed, or collect the tensors in a variable"
        return told.finding(
            self,
            message,
            _evidence(told, popped),
            severity=Severity.WARNING if popped else Severity.ADVICE,
            fix=Fix(title, Applicability.HINT),
        )


def _evidence(told: Told, popped: bool) -> Iterator[Evidence]:
    yield told.link(told.case.place, "the hook stores what the pass gives it")
    for place in told.case.moves:
        yield told.link(place, "this hook takes it away, when backward runs")
    for place in told.case.calls:
        yield told.link(
            place, "this pass has no backward" if popped else "the hook is registered here, and removed later"
        )
    yield from told.around("and is repeated by this loop")
