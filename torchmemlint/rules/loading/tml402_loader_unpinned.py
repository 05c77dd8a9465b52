"""TML402 loader-unpinned."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow import datasets
from torchmemlint.flow.facts import FileFacts, Loader, Transfer
from torchmemlint.flow.values import Known
from torchmemlint.rules.arguments import adding
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report
from torchmemlint.rules.loading import indexing
from torchmemlint.rules.loading.loaders import (
    in_tests,
    makes_device_tensors,
    name_of,
    own_batches,
    pins,
    to_accelerator,
    workers,
)
from torchmemlint.syntax.text import shortened


class LoaderUnpinned(Rule):
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

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield loaders that could pin and do not."""
        for loader in facts.loaders:
            transfer = unpinned(facts, loader)
            if transfer is None:
                continue
            yield report(
                self,
                facts,
                loader.site,
                f"`{name_of(loader.site)}` does not pin the batches that "
                f"`{shortened(transfer.text, 50)}` moves to an accelerator",
                evidence=[
                    (loader.site, "the loader is built without `pin_memory=True`"),
                    (transfer.site, "its batches are moved to an accelerator here"),
                ],
                fix=Fix("Pin the batches", Applicability.SAFE, adding(facts, loader.site, "pin_memory=True")),
            )


def unpinned(facts: FileFacts, loader: Loader) -> Transfer | None:
    """The transfer for which the loader ought to pin; None where nothing is to be said."""
    if pins(loader) is not False or loader.get("pin_memory") is not None or in_tests(facts, loader):
        return None
    if workers(loader) == 0:
        return None  # the loop itself would pin, and wait for that
    transfers = to_accelerator(facts, loader)
    if not transfers or makes_device_tensors(facts) is not None or _on_device(loader):
        return None
    if own_batches(loader) and any(transfer.whole for transfer in transfers):
        return None
    if any(map(indexing.moves, datasets.collating(facts, loader))):
        return None  # what lies on the device already cannot be pinned
    return transfers[0]


def _on_device(loader: Loader) -> bool:
    """Does the data set hold tensors that are not known to lie on the host?"""
    from torchmemlint.flow.values import Device, Tensor

    value = loader.dataset
    if isinstance(value, Known) and value.role == "dataset":
        return any(isinstance(v, Tensor) and v.device is Device.ACCELERATOR for _, v in value.arguments)
    return isinstance(value, Tensor) and value.device is Device.ACCELERATOR
