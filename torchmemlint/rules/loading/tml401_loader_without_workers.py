"""TML401 loader-without-workers."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.fact.outcomes import Feeding
from torchmemlint.rules.arguments import shown
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told

WORKERS = 4  # what the fix asks for; the right number depends on the machine and the data


class LoaderWithoutWorkers(TellingRule):
    """A loader prepares its batches in the training process.

    ## What it does
    Reports a `DataLoader` whose number of workers is 0: not given, given as 0, or 0 by the default of a command-line
    option (argparse, click), of a helper or of a constructor (a `LightningDataModule`) that every caller in the project
    leaves alone. Keyword dictionaries, `functools.partial`, namespaces, dataclasses, OmegaConf objects made from
    literals and helpers of the same file are followed.

    ## Why it costs memory
    It does not: it costs time, and with it the accelerator, whose memory is held while nothing computes. Each batch is
    read, decoded and augmented between two steps. Workers are not free either: each is a process with its own copy of
    what the data set holds, and keeps `prefetch_factor` (2) batches ready in host memory.

    ## Example
    ```python
    loader = DataLoader(dataset, batch_size=64, shuffle=True)
    ```

    ## Use instead
    ```python
    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4)
    ```

    ## Fix safety
    Unsafe: random augmentation draws from other generators in worker processes, the data set must survive being
    copied into them, and on Windows and macOS the script needs `if __name__ == "__main__":`. The number 4 is a start,
    not an optimum. No fix for an option that is 0 by default: the option is there to be set.

    ## When it stays silent
    The number of workers is not known (a configuration, unknown keywords), or is asked for by a caller; no work is seen
    in making an item: the data is in memory already (`TensorDataset`, its subsets and splits, lists, ranges, data sets
    whose `__getitem__` only indexes), or is out of view. The data is followed through helpers, parameters and
    attributes, also into other files; what counts as work is an item that a data set of the project opens, decodes or
    computes, a data set of torchvision, torchaudio or Hugging Face, or a transform that is handed over. Iterable data
    sets of the project, which would yield everything once per worker; a loader of which nothing but single batches is
    asked (`next(iter(loader))`, a loop that ends with `break`); scripts that make the accelerator the default device,
    on which workers cannot make tensors; branches for debugging, tests, and the demonstration at the end of a module
    that trains nothing.

    ## References
    - [torch.utils.data: single- and multi-process loading](https://docs.pytorch.org/docs/stable/data.html)
    - [Performance Tuning Guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code = "TML401"
    name = "loader-without-workers"
    severity = Severity.ADVICE
    fix = Applicability.UNSAFE
    why = "the accelerator, and what is held on it, waits while the training process itself prepares each batch"

    def tell(self, told: Told) -> Finding:
        """Say how it comes that a loader has no workers."""
        feeding = told.about(Feeding)
        text = shown(told.call.argument("num_workers", 5)) if told.call is not None else ""
        how = "`num_workers` is not given, and is 0 by default"
        if feeding.chosen:
            how = f"`num_workers` is `{text or 'an option'}`, an option that is 0 by default"
        elif text:
            how = "`num_workers` is 0" if text == "0" else f"`num_workers` is `{text}`, which is 0 here"
        return told.finding(
            self,
            f"`{told.callee_of(told.case.place)}` loads in the training process: {how}",
            [told.link(told.case.place, how), *told.called()],
            fix=Fix(f"Load with {WORKERS} worker processes", Applicability.UNSAFE, _edits(told)),
        )


def _edits(told: Told) -> tuple[Edit, ...]:
    """Give a number of workers, where the call says none, or says 0 itself: a name may be said to be another."""
    if told.call is None:
        return ()
    given = told.call.argument("num_workers", 5)
    if given is not None:
        return told.call.replacing(given, str(WORKERS)) if shown(given) == "0" else ()
    return () if told.about(Feeding).given else told.call.adding(f"num_workers={WORKERS}")
