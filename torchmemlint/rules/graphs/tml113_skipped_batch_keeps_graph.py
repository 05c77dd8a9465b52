"""TML113 skipped-batch-keeps-graph."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.owners import Skipped
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.separating import separated
from torchmemlint.rules.told import Told


class SkippedBatchKeepsGraph(TellingRule):
    """A batch is left out, and the next one is run while variables hold the graph of that."""

    def tell(self, told: Told) -> Finding:
        """Say what holds the graph of the batch that is left out."""
        skipped = told.about(Skipped)
        names = " and ".join(filter(None, (", ".join(f"`{n}`" for n in skipped.names[:-1]), f"`{skipped.names[-1]}`")))
        hold = "holds" if len(skipped.names) == 1 else "hold"
        return told.finding(
            self,
            f"{names} {hold} the skipped batch's graph and activations during the next one",
            [
                *told.begun(),
                told.here("no backward has freed the graph here"),
                *told.links([told.case.backward], "this backward frees the graph of other batches"),
                *told.around("the next iteration runs the forward pass before these names are reassigned"),
                *told.called(),
            ],
            severity=Severity.WARNING if skipped.caught else Severity.ADVICE,
            fix=_fix(told, skipped),
        )


def _fix(told: Told, skipped: Skipped) -> Fix:
    deleted = f"del {', '.join(skipped.names)}"
    if not skipped.can_go or told.statement != told.span or told.case.doubts:
        return Fix(f"First set `{' = '.join(skipped.names)} = None`", Applicability.HINT)
    own = separated(told.facts, told.statement)
    edits = own.led_by(f"{deleted}\n{own.indent}") if own is not None else ()
    return offered(f"Add `{deleted}` before `continue`", Applicability.SAFE, edits)
