"""TML503 gc-collect-in-loop."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class GcCollectInLoop(TellingRule):
    """The garbage collector looks at every object of the program for every batch.

    ## What it does
    Reports `gc.collect()` where it runs for every batch: in a loop over a loader, in a loop that runs a model or a
    backward itself, in a module's `forward`, and in the steps that a framework calls for every batch.

    ## Why it costs memory
    It costs time, and mostly frees nothing. A tensor goes when the last reference to it goes, without the collector,
    which is there for objects that refer to each other in circles. A full collection visits every object that there is:
    with torch and a few libraries loaded these are hundreds of thousands, and the device runs out of work meanwhile.
    Where it does free memory each time, something makes such circles, and is worth finding: an exception that is kept,
    a closure that holds itself, a module that refers to its owner.

    ## Example
    ```python
    for images, targets in loader:
        loss = criterion(model(images), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        gc.collect()
    ```

    ## Use instead
    ```python
    for images, targets in loader:
        loss = criterion(model(images), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    ```

    ## Fix safety
    There is none: if a circle holds tensors, the memory would grow until the collector runs by itself.

    ## When it stays silent
    It runs once per epoch or around an evaluation, every so many batches or under another condition than that there is
    an accelerator; it looks at the young objects only (`gc.collect(0)`); the file turns the collector off, tunes or
    freezes it, and so chooses when it runs; in an `except` clause; where memory is measured; between models, where the
    loop makes or takes another one each time; where nothing shows what the loop runs over; tests.

    ## References
    - [gc: garbage collector interface](https://docs.python.org/3/library/gc.html)
    - [PyTorch FAQ: my model reports out of memory](https://docs.pytorch.org/docs/stable/notes/faq.html)
    """

    code = "TML503"
    name = "gc-collect-in-loop"
    severity = Severity.ADVICE
    fix = Applicability.HINT
    why = "a tensor goes with its last reference; a full collection visits every object of the program meanwhile"

    def tell(self, told: Told) -> Finding:
        """Say that all garbage is collected for every batch."""
        return told.finding(
            self,
            f"`{told.text_of(told.case.place)}` visits every object of the program for every batch",
            [*told.each(), told.link(told.case.place, "a full collection runs here"), *told.called()],
            fix=Fix("Collect once per epoch, or leave it to the collector", Applicability.HINT),
        )
