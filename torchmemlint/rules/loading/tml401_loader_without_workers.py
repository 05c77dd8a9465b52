"""TML401 loader-without-workers."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts, Loader
from torchmemlint.rules.arguments import adding, is_default, node_of, replacing, shown
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report
from torchmemlint.rules.loading import data_sources, default_device, single_batches
from torchmemlint.rules.loading.loaders import for_debugging, in_tests, name_of, of_torch, only_shown, workers

WORKERS = 4  # what the fix asks for; the right number depends on the machine and the data


class LoaderWithoutWorkers(Rule):
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

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield loaders that are known to have no workers."""
        for loader in facts.loaders:
            if workers(loader) != 0 or loader.in_memory or loader.iterable:
                continue
            if for_debugging(loader) or in_tests(facts, loader) or not of_torch(loader) or only_shown(facts, loader):
                continue
            if _is_chosen(facts, loader) or not data_sources.shows_work(facts, loader):
                continue
            given = node_of(loader.site, "num_workers", 5)
            yield report(
                self,
                facts,
                loader.site,
                f"`{name_of(loader.site)}` loads in the training process: {_how(loader, shown(given))}",
                evidence=[(loader.site, _how(loader, shown(given)))],
                fix=Fix(f"Load with {WORKERS} worker processes", Applicability.UNSAFE, self._edits(facts, loader)),
            )

    def _edits(self, facts: FileFacts, loader: Loader) -> tuple[Edit, ...]:
        given = node_of(loader.site, "num_workers", 5)
        if given is not None and is_default(loader.get("num_workers")):
            return ()  # a number here would take the option away from whoever runs the program
        if given is not None:
            return replacing(loader.site, given, str(WORKERS))
        if loader.get("num_workers") is not None:
            return ()
        return adding(facts, loader.site, f"num_workers={WORKERS}")


def _is_chosen(facts: FileFacts, loader: Loader) -> bool:
    """Would workers not do: tensors are made on an accelerator, or single batches are all that is asked for?"""
    if default_device.is_accelerator(facts.program):
        return True
    return single_batches.only(facts, loader)


def _how(loader: Loader, text: str) -> str:
    value = loader.get("num_workers")
    if value is None:
        return "`num_workers` is not given, and is 0 by default"
    if is_default(value):
        return f"`num_workers` is `{text or 'an option'}`, an option that is 0 by default"
    return f"`num_workers` is `{text}`, which is 0 here" if text not in ("", "0") else "`num_workers` is 0"
