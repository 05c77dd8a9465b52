"""TML403 blocking-transfer."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding
from torchmemlint.flow.fact.details import Feeding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.loading.alike import moves_alike
from torchmemlint.rules.told import Told


class BlockingTransfer(TellingRule):
    """A pinned batch is copied to the accelerator while the program waits."""

    def tell(self, told: Told) -> Finding:
        """Say that the program waits for a copy, and for which."""
        feeding = told.about(Feeding)
        text = told.brief
        pinning = "" if feeding.pins else " and pin (TML402)"
        memory = "which pins its memory" if feeding.pins else "which should pin its memory (TML402)"
        moves = [*moves_alike(told), *map(told.call_at, feeding.beside)]
        edits = tuple(edit for one in moves if one is not None for edit in one.adding("non_blocking=True"))
        return told.finding(
            self,
            f"`{text}` blocks until the copy finishes: pass `non_blocking=True`{pinning}",
            [
                told.link(feeding.loader, f"the batch comes from this `{told.callee_of(feeding.loader)}`, {memory}"),
                told.here("the batch is copied to the GPU without `non_blocking=True`"),
                *told.links(feeding.beside, "this part of the batch, too"),
            ],
            fix=offered("Pass `non_blocking=True`", Applicability.SAFE, edits),
        )
