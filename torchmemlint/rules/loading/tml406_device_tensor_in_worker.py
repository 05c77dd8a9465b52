"""TML406 device-tensor-in-worker."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.datasets import Called, Part, called_by_loaders
from torchmemlint.flow.facts import FileFacts, Loader, Placed
from torchmemlint.flow.program import Function
from torchmemlint.rules.arguments import known
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, is_test, report
from torchmemlint.rules.loading.loaders import in_tests, name_of, workers
from torchmemlint.rules.steps import always
from torchmemlint.syntax.text import shortened

_IN_WORKER = "a forked worker cannot use CUDA that its parent has started, any other takes a context of its own for it"
_HINT = "Leave it on the host, and move the batch in the training loop"


class DeviceTensorInWorker(Rule):
    """Tensors are put on the accelerator while data is loaded.

    ## What it does
    Reports `.cuda()`, `.to(device)` and `device=` for an accelerator in what a loader calls: the `__getitem__` of a
    map-style data set, the `__iter__` of an iterable one, `collate_fn` and `worker_init_fn`, with the functions of the
    same file that these call. A warning where a loader in view has workers. Without workers in view it is an advice,
    and only about `__getitem__`, which copies sample by sample.

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

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield tensors that loading puts on an accelerator, one for each function."""
        if is_test(facts):
            return
        called = called_by_loaders(facts)
        reported: set[Function] = set()
        for placed in facts.placed:
            function = _within(placed, called)
            if function is None or function in reported or not _each_time(placed) or _asks_where(function):
                continue
            finding = self._judge(facts, placed, called[function])
            if finding is not None:
                reported.add(function)
                yield finding
        for loader in facts.loaders:
            if loader.placed is not None and workers(loader) and not in_tests(facts, loader):
                yield self._finding(facts, loader.placed, _worker_links(loader, "the lambda that makes its batches"))

    def _judge(self, facts: FileFacts, placed: Placed, called: Called) -> Finding | None:
        what = _what(called)
        given = [one for one in called.loaders if not placed.attribute or placed.attribute in one.on_accelerator]
        if placed.attribute and not given:
            return None
        loader = next((one for one in given if workers(one) and not in_tests(facts, one)), None)
        if loader is not None:
            return self._finding(facts, placed, _worker_links(loader, what))
        if called.part is not Part.SAMPLE or (given and all(_one_by_one(one) for one in given)):
            return None
        return report(
            self,
            facts,
            placed.site,
            f"`{shortened(placed.text, 50)}` copies each sample to the accelerator by itself, and keeps workers out",
            severity=Severity.ADVICE,
            evidence=[(placed.site, f"{what} puts a tensor on an accelerator here"), (placed.site, _IN_WORKER)],
            fix=Fix(_HINT, Applicability.HINT, ()),
        )

    def _finding(self, facts: FileFacts, placed: Placed, links: list[Link]) -> Finding:
        return report(
            self,
            facts,
            placed.site,
            f"`{shortened(placed.text, 50)}` puts a tensor on the accelerator in a worker process",
            evidence=[*links, (placed.site, _IN_WORKER)],
            fix=Fix(_HINT, Applicability.HINT, ()),
        )


def _within(placed: Placed, called: dict[Function, Called]) -> Function | None:
    """The function that a loader calls and that the fact stands in, or in a function within it."""
    function = placed.scope.function
    while function is not None and function not in called:
        function = function.parent
    return function


def _each_time(placed: Placed) -> bool:
    """Does it depend on nothing but the data, or on whether there is an accelerator?"""
    return always(test for test in placed.tests if not _about_data(test[0]))


def _about_data(test: cst.BaseExpression) -> bool:
    match test:
        case cst.Call(func=cst.Name(value="isinstance" | "hasattr" | "len")):
            return True
    return False


def _asks_where(function: Function) -> bool:
    """Does it do one thing in a worker and another in the training process?"""
    return "get_worker_info" in function.outline.calls


def _one_by_one(loader: Loader) -> bool:
    """Has it no workers, and is an item all that it copies at a time?"""
    if workers(loader) != 0:
        return False
    size = loader.get("batch_size")
    return loader.get("batch_sampler") is None and (size is None or known(size) in (None, 1))


def _what(called: Called) -> str:
    entry = called.entry
    name = f"{entry.cls.name}.{entry.name}" if entry.cls is not None else entry.name
    return f"`{name}`"


def _worker_links(loader: Loader, what: str) -> list[Link]:
    return [(loader.site, f"the workers of this {name_of(loader.site)} run {what}")]
