"""TML404 loader-respawns-workers."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Severity
from torchmemlint.flow.fact.outcomes import Feeding
from torchmemlint.rules.arguments import shown
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.told import Told


class LoaderRespawnsWorkers(TellingRule):
    """A loader starts its workers again in every epoch.

    ## What it does
    Reports a `DataLoader` with workers and without `persistent_workers` that is built once and iterated over inside a
    loop (an epoch loop, in the same function or around a call of one that the loader is handed to).

    ## Why it costs memory
    At the end of each pass all worker processes end, and with the next pass they are started again: each imports its
    modules and receives its copy of the data set anew, and the first batches are prepared from nothing while the
    accelerator, with all that it holds, waits. Persistent workers keep their processes, and so their copies of the
    data set in host memory, between passes.

    ## Example
    ```python
    loader = DataLoader(dataset, num_workers=8)
    for epoch in range(epochs):
        for batch in loader:
            ...
    ```

    ## Use instead
    ```python
    loader = DataLoader(dataset, num_workers=8, persistent_workers=True)
    ```

    ## Fix safety
    Unsafe: the same data comes out, with other random numbers. Each start of the workers draws a seed for them from
    torch's generator; workers that persist are seeded once. Measured: from the second pass on, a program that is seeded
    (here or by who runs it) shuffles in another order, augments and drops out otherwise, all equally random. Where the
    number of workers is an option, the fix asks whether it is above 0, since persistent workers without workers are an
    error.

    ## When it stays silent
    The number of workers is 0 or not known; the loader is built inside the loop, or iterated over once; somebody wrote
    `persistent_workers=False`; the data set is changed after it was handed over (`dataset.set_epoch(...)`, an assigned
    attribute), which copies in persistent workers would not see; the epoch loop is a framework's; the project supports
    torch before 1.7 (`target-torch`, else the nearest `requirements.txt` or the like), which has no such argument.

    ## References
    - [torch.utils.data.DataLoader: persistent_workers](https://docs.pytorch.org/docs/stable/data.html)
    - [pytorch#15849](https://github.com/pytorch/pytorch/issues/15849)
    """

    code = "TML404"
    name = "loader-respawns-workers"
    severity = Severity.ADVICE
    fix = Applicability.UNSAFE
    why = "worker processes, and their copies of the data set, are made anew in every epoch"

    since = (1, 7)  # torch's release notes

    def tell(self, told: Told) -> Finding:
        """Say where a loader with workers is iterated over again and again."""
        feeding = told.about(Feeding)
        assert feeding.iterated is not None
        assert feeding.again is not None
        number = "workers" if feeding.chosen or feeding.workers == 1 else f"{feeding.workers} workers"
        return told.finding(
            self,
            f"`{told.callee_of(told.case.place)}` starts its {number} again at every pass over it",
            [
                told.link(told.case.place, "the loader is built without `persistent_workers=True`"),
                told.link(feeding.iterated, "it is iterated over here"),
                told.link(feeding.again, "and again with each iteration of this loop"),
            ],
            fix=offered("Keep the workers between passes", Applicability.UNSAFE, _edits(told, asks=feeding.chosen)),
        )


def _edits(told: Told, *, asks: bool) -> tuple[Edit, ...]:
    """Add the argument; where the number of workers may be chosen, it depends on that."""
    given = shown(told.call.argument("num_workers", 5)) if told.call is not None else ""
    if told.call is None or (asks and not given):
        return ()
    return told.call.adding(f"persistent_workers={f'{given} > 0' if asks else 'True'}")
