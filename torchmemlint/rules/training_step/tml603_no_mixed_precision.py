"""TML603 no-mixed-precision."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import is_test
from torchmemlint.rules.told import Told
from torchmemlint.rules.training_step import precision


class NoMixedPrecision(TellingRule):
    """A model is trained on an accelerator in float32 alone."""

    def tell(self, told: Told) -> Finding | None:
        """Say which backward pass runs in float32, unless somebody has thought of it."""
        if is_test(told.facts) or precision.spoken_of(told.facts):
            return None
        place, (moved, *_) = told.case.place, told.case.moves
        return told.finding(
            self,
            f"`{told.text_of(place)}`: forward and backward run entirely in float32 on the GPU",
            [
                told.link(moved, "moves the batches of this loop to the GPU"),
                told.link(place, "differentiates what was computed in float32: nothing asks for another precision"),
                *told.called(),
            ],
            hint='Run the forward pass under `torch.autocast("cuda", dtype=torch.bfloat16)`',
        )
