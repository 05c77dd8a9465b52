"""TML407 oversized-worker-pool."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.outcomes import Feeding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class OversizedWorkerPool(TellingRule):
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

    def tell(self, told: Told) -> Finding:
        """Say how many workers there are."""
        feeding = told.about(Feeding)
        default = " by default" if feeding.chosen else ""
        again = ", in each process of the distributed program" if feeding.ranks else ""
        ready = ", each with memory of its own and batches that it keeps ready"
        if feeding.ahead is not None:
            ready = f", and keep {feeding.ahead} batches ready"
        links = []
        if feeding.counted is not None:
            counts = f"`{feeding.workers}` counts all CPUs, also those that this process may not use"
            links.append(told.link(feeding.counted, counts))
        number = f"{feeding.workers} workers" if feeding.counted is None else "a worker for each CPU of the machine"
        return told.finding(
            self,
            f"`{told.callee_of(told.case.place)}` starts {number}{default}{again}",
            [*links, told.link(told.case.place, f"the workers are started here{ready}"), *told.called()],
            fix=Fix("Start as many workers as keep the accelerator busy", Applicability.HINT, ()),
        )
