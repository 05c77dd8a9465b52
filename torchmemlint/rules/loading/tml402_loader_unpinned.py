"""TML402 loader-unpinned."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.flow.fact.outcomes import Feeding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.told import Told


class LoaderUnpinned(TellingRule):
    """Batches go to an accelerator from pageable memory.

    ## What it does
    Reports a `DataLoader` without `pin_memory` whose batches are seen to be moved to an accelerator: by `.cuda()`, or
    by `.to(device)` where the device is one (also where it is the CPU on machines without one), in the same function
    or in one of the same file that the loader is handed to.

    ## Why it costs memory
    A copy from pageable memory goes through a staging buffer of the driver and makes the program wait until it is
    done, so that batch and computation never overlap; `non_blocking=True` does nothing there. A pinned batch is copied
    by the device itself. Pinned memory is host memory that cannot be paged out: as much of it as there are batches on
    the way. It does not change how much memory the accelerator needs. How much time it saves depends on the batch: with
    16 KiB, prepared in the loop, it saved none on a GPU.

    ## Example
    ```python
    loader = DataLoader(dataset, batch_size=64, num_workers=4)
    for images, targets in loader:
        images, targets = images.to("cuda"), targets.to("cuda")
    ```

    ## Use instead
    ```python
    loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
    for images, targets in loader:
        images = images.to("cuda", non_blocking=True)
        targets = targets.to("cuda", non_blocking=True)
    ```

    ## Fix safety
    Safe: the same values are copied; measured, the order of the data stays as it was. On a machine without an
    accelerator torch warns and does not pin.

    ## When it stays silent
    Where the batches go is not seen or not known; somebody wrote `pin_memory=False`; keywords are unknown; the loader
    has no workers ([TML401](TML401.md) comes first): only beside workers a thread pins, otherwise it is done in the
    loop, which waits for it and gains nothing over a copy from pageable memory; the data is on the device already
    (pinning would raise); a collate function of the project's own makes batches that are moved as a whole, whose class
    may not know how to be pinned.

    ## References
    - [torch.utils.data: memory pinning](https://docs.pytorch.org/docs/stable/data.html#memory-pinning)
    - [A guide on pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code = "TML402"
    name = "loader-unpinned"
    severity = Severity.ADVICE
    fix = Applicability.SAFE
    why = "each copy from pageable memory makes the program wait, while what it computes with is held"

    def tell(self, told: Told) -> Finding:
        """Say which batches are moved from pageable memory."""
        feeding = told.about(Feeding)
        assert feeding.moved is not None
        edits = told.call.adding("pin_memory=True") if told.call is not None else ()
        return told.finding(
            self,
            f"`{told.callee_of(told.case.place)}` does not pin the batches that"
            f" `{told.text_of(feeding.moved)}` moves to an accelerator",
            [
                told.link(told.case.place, "the loader is built without `pin_memory=True`"),
                told.link(feeding.moved, "its batches are moved to an accelerator here"),
            ],
            fix=offered("Pin the batches", Applicability.SAFE, edits),
        )
