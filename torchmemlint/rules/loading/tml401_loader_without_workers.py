"""TML401 loader-without-workers."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix
from torchmemlint.flow.fact.outcomes import Feeding
from torchmemlint.rules.arguments import shown
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told

WORKERS = 4  # what the fix asks for; the right number depends on the machine and the data


class LoaderWithoutWorkers(TellingRule):
    """A loader prepares its batches in the training process."""

    def tell(self, told: Told) -> Finding:
        """Say how it comes that a loader has no workers."""
        feeding = told.about(Feeding)
        text = shown(told.call.argument("num_workers", 5)) if told.call is not None else ""
        how = "`num_workers` is not given (default 0)"
        if feeding.chosen:
            how = f"`num_workers` is `{text or 'an option'}`, an option that is 0 by default"
        elif text:
            how = "`num_workers` is 0" if text == "0" else f"`num_workers` is `{text}`, which is 0 here"
        return told.finding(
            self,
            f"`{told.callee_of(told.case.place)}` loads batches in the training process: {how}",
            [told.link(told.case.place, how), *told.called()],
            fix=Fix(f"Load with {WORKERS} worker processes", Applicability.UNSAFE, _edits(told)),
        )


def _edits(told: Told) -> tuple[Edit, ...]:
    """Give a number of workers, where the call says none, or says 0 itself: a name may be said to be another."""
    if told.call is None:
        return ()
    given = told.call.argument("num_workers", 5)
    if given is not None:
        return told.call.replacing(given, str(WORKERS)) if shown(given) == "0" else ()
    return () if told.about(Feeding).given else told.call.adding(f"num_workers={WORKERS}")
