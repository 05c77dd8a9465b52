"""TML502 empty-cache-in-loop."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.flow.fact.outcomes import Serving
from torchmemlint.flow.fact.services import Each
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.removal import removing
from torchmemlint.rules.told import Told


class EmptyCacheInLoop(TellingRule):
    """The allocator's cache is emptied for every batch, which has to fill it again.

    ## What it does
    Reports `torch.cuda.empty_cache()`, and its like for other accelerators, where it runs for every batch: in a loop
    over a loader, in a loop that runs a model or a backward itself, and, as an advice, in a module's `forward` and in
    the steps that a framework calls for every batch.

    ## Why it costs memory
    It costs time, and frees nothing that the program could not use anyway: the cache holds blocks that no tensor uses,
    and the next batch's tensors would have gone there. Without them the allocator asks the driver again, and giving the
    blocks back waits for all that the device is computing. Only other processes on the same device gain.

    ## Example
    ```python
    for images, targets in loader:
        optimizer.zero_grad()
        criterion(model(images), targets).backward()
        optimizer.step()
        torch.cuda.empty_cache()
    ```

    ## Use instead
    ```python
    for images, targets in loader:
        optimizer.zero_grad()
        criterion(model(images), targets).backward()
        optimizer.step()
    ```

    ## Fix safety
    Safe: no tensor is touched. A program that runs out of memory because of fragmentation is better served by
    `PYTORCH_ALLOC_CONF=expandable_segments:True`.

    ## When it stays silent
    It runs once per epoch or around an evaluation, every so many batches or under another condition than that there is
    an accelerator; in an `except` clause; where memory is measured; between models, where the loop makes or takes
    another one each time; where nothing shows what the loop runs over; tests.

    ## References
    - [torch.cuda.empty_cache](https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html)
    - [CUDA semantics: memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    """

    code = "TML502"
    name = "empty-cache-in-loop"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    why = "the next batch asks the driver for the same blocks again, after a wait for all that the device computes"

    def tell(self, told: Told) -> Finding:
        """Say that the cache is emptied for every batch."""
        serving = told.about(Serving)
        removed = removing(told.facts, told.span) if serving.inside else ()
        return told.finding(
            self,
            f"`{told.text_of(told.case.place)}` runs on every batch: "
            "the next one must request its memory from the driver again",
            [*told.each(), told.link(told.case.place, "the cached blocks go back to the driver here"), *told.called()],
            severity=Severity.ADVICE if serving.each is Each.CALLED else None,
            fix=offered("Leave the cache alone", Applicability.SAFE, removed),
        )
