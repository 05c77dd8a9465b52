"""TML402 loader-unpinned."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding
from torchmemlint.flow.fact.details import Feeding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.loading.alike import loaders_alike
from torchmemlint.rules.told import Told


class LoaderUnpinned(TellingRule):
    """Batches go to an accelerator from pageable memory."""

    def tell(self, told: Told) -> Finding:
        """Say which batches are moved from pageable memory."""
        feeding = told.about(Feeding)
        assert feeding.moved is not None
        edits = tuple(edit for one in loaders_alike(told) for edit in one.adding("pin_memory=True"))
        return told.finding(
            self,
            f"`{told.callee_of(told.case.place)}` does not pin the batches that"
            f" `{told.text_of(feeding.moved)}` copies to the GPU",
            [
                told.here("the loader is built without `pin_memory=True`"),
                told.link(feeding.moved, "its batches are copied to the GPU here"),
            ],
            fix=offered("Pass `pin_memory=True`", Applicability.SAFE, edits),
        )
