"""TML403 blocking-transfer."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.flow.fact.outcomes import Feeding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.told import Told


class BlockingTransfer(TellingRule):
    """A pinned batch is copied to the accelerator while the program waits.

    ## What it does
    Reports `.to(device)` and `.cuda()` without `non_blocking=True` on a batch, or a part of one, that comes from a
    loader which pins its batches (or which TML402 asks to), and goes to an accelerator.

    ## Why it costs memory
    It costs time: the program waits for the copy although the device could make it beside the computation, in the same
    stream and so before anything that uses it. It does not change how much memory is needed. How much time depends on
    the batch: with 16 KiB none was saved on a GPU.

    ## Example
    ```python
    loader = DataLoader(dataset, num_workers=4, pin_memory=True)
    for images, targets in loader:
        images, targets = images.cuda(), targets.cuda()
    ```

    ## Use instead
    ```python
    loader = DataLoader(dataset, num_workers=4, pin_memory=True)
    for images, targets in loader:
        images, targets = images.cuda(non_blocking=True), targets.cuda(non_blocking=True)
    ```

    ## Fix safety
    Safe towards the accelerator: whatever uses the copy is queued behind it. It is offered in that direction only;
    towards the host a copy that does not wait is a data race.

    ## When it stays silent
    The batch does not come straight from a loader in view, the loader does not pin or is not known to, what is moved
    was computed on the host (and is pageable), the device is not known or may be the host, `non_blocking` is given in
    any form, the batch is an object of the project's own, whose `to` may not take the argument, or a part of one that a
    tokenizer may have made, or a `break` ends the loop with its first batch; tests.

    ## References
    - [CUDA semantics: use pinned memory buffers](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    - [A guide on pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code = "TML403"
    name = "blocking-transfer"
    severity = Severity.ADVICE
    fix = Applicability.SAFE
    why = "the program waits for a copy that the device could make beside the computation"

    def tell(self, told: Told) -> Finding:
        """Say that the program waits for a copy, and for which."""
        feeding = told.about(Feeding)
        text = told.text_of(told.case.place)
        copy = "a pinned batch" if feeding.pins else "its batch, and would if that were pinned (TML402)"
        memory = "which pins its memory" if feeding.pins else "which should pin its memory (TML402)"
        edits = told.call.adding("non_blocking=True") if told.call is not None else ()
        return told.finding(
            self,
            f"`{text}` waits for the copy of {copy}",
            [
                told.link(feeding.loader, f"the batch comes from this {told.callee_of(feeding.loader)}, {memory}"),
                told.link(told.case.place, "it is copied to an accelerator without `non_blocking=True`"),
            ],
            fix=offered("Do not wait for the copy", Applicability.SAFE, edits),
        )
