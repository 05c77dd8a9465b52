"""TML502 empty-cache-in-loop."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.flow.fact.details import Serving
from torchmemlint.flow.fact.services import Each
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.removal import removing
from torchmemlint.rules.told import Told


class EmptyCacheInLoop(TellingRule):
    """The allocator's cache is emptied for every batch, which has to fill it again."""

    def tell(self, told: Told) -> Finding:
        """Say that the cache is emptied for every batch."""
        serving = told.about(Serving)
        removed = removing(told.facts, told.span) if serving.inside else ()
        return told.finding(
            self,
            f"`{told.brief}` runs on every batch: the next one has to request its memory again",
            [*told.each(), told.here("the cached blocks go back to the driver here"), *told.called()],
            severity=Severity.ADVICE if serving.each in (Each.CALLED, Each.PHASES) else None,
            fix=offered("Remove `empty_cache()`", Applicability.SAFE, removed),
        )
