"""TML602 step-locals-kept."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.flow.fact.details import Held
from torchmemlint.flow.fact.extents import DIMENSIONS
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told
from torchmemlint.syntax.text import shortened


class StepLocalsKept(TellingRule):
    """A large result of one iteration is still there while the next one runs its forward pass."""

    def tell(self, told: Told) -> Finding:
        """Say which variable holds the last result."""
        case, held = told.case, told.about(Held)
        callee = shortened(told.call.callee, 40) if told.call is not None else told.text_of(case.place)
        large = f"`{held.name}` has at least {DIMENSIONS} dimensions: something for each position"
        if held.wide is not None:
            large = f"`{held.wide.rpartition('.')[2]}` predicts something for every token or pixel"
        return told.finding(
            self,
            f"`{held.name}` still holds the last iteration's result while `{callee}(...)` runs again",
            [
                told.link(case.place, f"`{callee}(...)` runs with gradients disabled: memory peaks here"),
                told.link(held.shown, large),
                *told.around(f"`{held.name}` is still set when the next iteration begins"),
                *told.called(),
            ],
            hint=f"`del {held.name}` after its last use, or make the loop's body a function",
        )
