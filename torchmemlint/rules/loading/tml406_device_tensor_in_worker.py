"""TML406 device-tensor-in-worker."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.outcomes import Placing
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told

_IN_WORKER = "a forked worker cannot use CUDA that its parent has started, any other takes a context of its own for it"
_HINT = "Leave it on the host, and move the batch in the training loop"


class DeviceTensorInWorker(TellingRule):
    """Tensors are put on the accelerator while data is loaded.

    ## What it does
    Reports `.cuda()`, `.to(device)` and `device=` for an accelerator in what a loader calls: the `__getitem__` of a
    map-style data set, the `__iter__` of an iterable one, `collate_fn` and `worker_init_fn`, with the functions that
    these call. A warning where a loader in the project has workers. Without workers in view it is an advice, and only
    about `__getitem__`, which copies sample by sample.

    ## Why it costs memory
    A worker is a process. One that is forked (on Linux the way until Python 3.13) cannot use CUDA at all where its
    parent has: `Cannot re-initialize CUDA in forked subprocess`. One that is spawned starts CUDA anew, and so holds a
    context of its own on the device, beside the parent's, with what its own caching allocator reserves; each batch
    that is sent to the parent keeps the worker's memory taken until the parent drops it. Without workers every sample
    is a copy by itself, which waits, and lies on the device beside the batch that is made of it.

    ## Example
    ```python
    class Images(Dataset):
        def __getitem__(self, index):
            return read_image(self.paths[index]).cuda()
    ```

    ## Use instead
    ```python
    class Images(Dataset):
        def __getitem__(self, index):
            return read_image(self.paths[index])

    for images in DataLoader(Images(), batch_size=64, num_workers=4, pin_memory=True):
        images = images.cuda(non_blocking=True)
    ```

    ## Fix safety
    A hint: the transfer belongs into every loop that takes batches from the loader.

    ## When it stays silent
    The device is not known, or may be the CPU; it depends on an option or on whether the code runs in a worker; a
    `collate_fn` or an iterable data set without workers in view, which moves whole batches in the training process;
    a data set whose loaders have no workers and take one item at a time; tests.

    ## References
    - [torch.utils.data: multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
    - [pytorch#77159](https://github.com/pytorch/pytorch/issues/77159)
    - [Multiprocessing: CUDA in multiprocessing](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing)
    """

    code = "TML406"
    name = "device-tensor-in-worker"
    severity = Severity.WARNING
    fix = Applicability.HINT
    why = "each worker that starts the accelerator takes a context on it; without workers each sample is a copy"

    def tell(self, told: Told) -> Finding:
        """Say which tensors are put on an accelerator by what a loader calls."""
        case, placing = told.case, told.about(Placing)
        text, loader = told.text_of(case.place), placing.loader
        what = f"`{placing.entry}`" if placing.entry else "the lambda that makes its batches"
        if loader is None:
            message = f"`{text}` copies each sample to the accelerator by itself, and keeps workers out"
            first = told.link(case.place, f"{what} puts a tensor on an accelerator here")
        else:
            message = f"`{text}` puts a tensor on the accelerator in a worker process"
            first = told.link(loader, f"the workers of this {told.callee_of(loader)} run {what}")
        return told.finding(
            self,
            message,
            [first, *told.called(), told.link(case.place, _IN_WORKER)],
            severity=Severity.ADVICE if loader is None else self.severity,
            fix=Fix(_HINT, Applicability.HINT),
        )
