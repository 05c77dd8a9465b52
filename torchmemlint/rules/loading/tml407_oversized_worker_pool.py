"""TML407 oversized-worker-pool."""

from __future__ import annotations

import math
from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts, Loader
from torchmemlint.flow.values import Constant, Known, Value
from torchmemlint.rules.arguments import is_default, known
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, is_test, report
from torchmemlint.rules.loading.loaders import in_tests, name_of

MANY = 64  # as many logical CPUs as a machine with one or two sockets has, and no more are its own in a shared one
PREFETCHED = 2  # batches that each worker keeps ready, unless `prefetch_factor` says otherwise
_DISTRIBUTED = frozenset({"init_process_group", "DistributedDataParallel", "DistributedSampler"})


class OversizedWorkerPool(Rule):
    """A loader starts more workers than there are CPUs for them.

    ## What it does
    Reports a `DataLoader` that asks for a worker for each CPU of the machine (`os.cpu_count()`,
    `multiprocessing.cpu_count()`, perhaps several times as many), or for 64 or more.

    ## Why it costs memory
    Each worker is a process with memory of its own: what it imports and touches, and its copies of what the data set
    holds. It keeps `prefetch_factor` batches ready (2), in shared memory, pinned ones on top; 64 workers hold 128
    batches on their way. `os.cpu_count()` counts the CPUs of the machine, also those that a container, a job scheduler
    or `taskset` keeps from this process, and leaves none for the training process or for the other ranks of a
    distributed run, each of which starts as many. Where there are more workers than CPUs that the process may use,
    torch warns that "excessive worker creation might get DataLoader running slow or even freeze".

    ## Example
    ```python
    loader = DataLoader(dataset, batch_size=64, num_workers=os.cpu_count())
    ```

    ## Use instead
    ```python
    loader = DataLoader(dataset, batch_size=64, num_workers=4)
    ```

    ## Fix safety
    A hint: as many workers as keep the accelerator busy are enough, and how many these are is for a measurement to
    say; `len(os.sched_getaffinity(0))` (or `os.process_cpu_count()` from Python 3.13) divided by the number of
    processes on the machine is the most that makes sense.

    ## When it stays silent
    The number is bounded (`min(8, os.cpu_count())`), a part of the CPUs (`os.cpu_count() // 4`), taken from the CPUs
    that the process may use, less than 64, or not known; tests.

    ## References
    - [torch.utils.data: multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
    - torch.utils.data.dataloader: `DataLoader.check_worker_number_rationality`
    """

    code = "TML407"
    name = "oversized-worker-pool"
    severity = Severity.ADVICE
    fix = Applicability.HINT
    why = "each worker is a process with memory of its own and keeps batches ready that nobody has asked for yet"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield loaders with a worker for each CPU, or with very many."""
        if is_test(facts):
            return
        for loader in facts.loaders:
            value = loader.get("num_workers")
            number = None if loader.unknown_keywords else _number(value)
            if number is None or in_tests(facts, loader):
                continue
            default = " by default" if is_default(value) else ""
            yield report(
                self,
                facts,
                loader.site,
                f"`{name_of(loader.site)}` starts {number}{default}{_and_again(facts)}",
                evidence=[*_counted(value), (loader.site, f"the workers are started here{_ready(loader, value)}")],
                fix=Fix("Start as many workers as keep the accelerator busy", Applicability.HINT, ()),
            )


def _number(value: Value | None) -> str | None:
    """How many workers there are, in words; None where that is not known or not too many."""
    cpus = _cpus(value)
    if cpus is not None:
        times = [one.value for _, one in cpus.arguments if isinstance(one, Constant)]
        if any(not isinstance(one, int) for one in times) or (factor := math.prod(times)) < 1:
            return None
        return (
            "a worker for each CPU of the machine" if factor == 1 else f"{factor} workers for each CPU of the machine"
        )
    count = known(value)
    return f"{count} workers" if isinstance(count, int) and count >= MANY else None


def _cpus(value: Value | None) -> Known | None:
    if isinstance(value, Known) and value.role == "default":
        value = value.element
    return value if isinstance(value, Known) and value.role == "cpus" else None


def _counted(value: Value | None) -> list[Link]:
    cpus = _cpus(value)
    if cpus is None or cpus.made is None:
        return []
    return [(cpus.made, f"`{cpus.qualified}` counts all CPUs, also those that this process may not use")]


def _and_again(facts: FileFacts) -> str:
    """In a distributed program the loader is there once for each rank."""
    calls = (outline.calls for outline in facts.program.outlines())
    return (
        ", in each process of the distributed program" if any(not _DISTRIBUTED.isdisjoint(one) for one in calls) else ""
    )


def _ready(loader: Loader, value: Value | None) -> str:
    """How many batches they keep ready, where that can be said."""
    count, factor = known(value), loader.get("prefetch_factor")
    ahead = PREFETCHED if factor is None else known(factor)
    if not isinstance(count, int) or not isinstance(ahead, int):
        return ", each with memory of its own and batches that it keeps ready"
    return f", and keep {count * ahead} batches ready"
