"""TML404 loader-respawns-workers."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts, Loader
from torchmemlint.knowledge import versions
from torchmemlint.rules.arguments import adding, is_default, node_of
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report
from torchmemlint.rules.loading.loaders import in_tests, name_of, of_torch, repeated, workers
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.text import text_of

_PERSISTENT_SINCE = (1, 7)  # torch's release notes
# Methods that tell a data set something: its copies in persistent workers would not hear of it.
_TELLING = ("set_", "update", "shuffle", "resample", "add_", "next_", "on_epoch", "reset", "refresh", "reload", "build",
            "generate", "step", "append", "insert", "remove", "select", "prepare", "new_", "load")  # fmt: skip


class LoaderRespawnsWorkers(Rule):
    """A loader starts its workers again in every epoch.

    ## What it does
    Reports a `DataLoader` with workers and without `persistent_workers` that is built once and iterated over inside a
    loop (an epoch loop, in the same function or around a call of one that the loader is handed to).

    ## Why it costs memory
    At the end of each pass all worker processes end, and with the next pass they are started again: each imports its
    modules and receives its copy of the data set anew, and the first batches are prepared from nothing while the
    accelerator, with all that it holds, waits. Persistent workers keep their processes, and so their copies of the
    data set in host memory, between passes.

    ## Example
    ```python
    loader = DataLoader(dataset, num_workers=8)
    for epoch in range(epochs):
        for batch in loader:
            ...
    ```

    ## Use instead
    ```python
    loader = DataLoader(dataset, num_workers=8, persistent_workers=True)
    ```

    ## Fix safety
    Unsafe: the same data comes out, with other random numbers. Each start of the workers draws a seed for them from
    torch's generator; workers that persist are seeded once. Measured: from the second pass on, a program that is seeded
    (here or by who runs it) shuffles in another order, augments and drops out otherwise, all equally random. Where the
    number of workers is an option, the fix asks whether it is above 0, since persistent workers without workers are an
    error.

    ## When it stays silent
    The number of workers is 0 or not known; the loader is built inside the loop, or iterated over once; somebody wrote
    `persistent_workers=False`; the data set is changed after it was handed over (`dataset.set_epoch(...)`, an assigned
    attribute), which copies in persistent workers would not see; the epoch loop is a framework's; the project supports
    torch before 1.7 (`target-torch`, else the nearest `requirements.txt` or the like), which has no such argument.

    ## References
    - [torch.utils.data.DataLoader: persistent_workers](https://docs.pytorch.org/docs/stable/data.html)
    - [pytorch#15849](https://github.com/pytorch/pytorch/issues/15849)
    """

    code = "TML404"
    name = "loader-respawns-workers"
    severity = Severity.ADVICE
    fix = Applicability.UNSAFE
    why = "worker processes, and their copies of the data set, are made anew in every epoch"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield loaders with workers that are iterated over again and again."""
        if versions.release_of(facts.target_torch) < _PERSISTENT_SINCE:
            return
        for loader in facts.loaders:
            count = workers(loader)
            if not count or loader.get("persistent_workers") is not None or not of_torch(loader):
                continue
            if in_tests(facts, loader) or _dataset_changes(facts, loader):
                continue
            found = repeated(facts, loader)
            if found is None:
                continue
            iteration, loop = found
            yield report(
                self,
                facts,
                loader.site,
                f"`{name_of(loader.site)}` starts its {_number(loader, count)} again at every pass over it",
                evidence=[
                    (loader.site, "the loader is built without `persistent_workers=True`"),
                    (iteration.site, "it is iterated over here"),
                    *([(loop.site, "and again with each iteration of this loop")] if loop.site is not None else []),
                ],
                fix=self._fix(facts, loader),
            )

    def _fix(self, facts: FileFacts, loader: Loader) -> Fix | None:
        value = "True"
        if is_default(loader.get("num_workers")):
            given = node_of(loader.site, "num_workers", 5)
            if given is None:
                return None
            value = f"{text_of(given)} > 0"
        return Fix(
            "Keep the workers between passes",
            Applicability.UNSAFE,
            adding(facts, loader.site, f"persistent_workers={value}"),
        )


def _number(loader: Loader, count: int) -> str:
    return "workers" if is_default(loader.get("num_workers")) else f"{count} worker{'s' if count > 1 else ''}"


def _dataset_changes(facts: FileFacts, loader: Loader) -> bool:
    """Is the data set told anything, or given an attribute, anywhere in the file?"""
    given = node_of(loader.site, "dataset", 0)
    path = dotted_text(given) if isinstance(given, cst.Name | cst.Attribute) else ""
    paths = {p for p in (*facts.methods, *facts.assigned_on) if p and (p == path or p.endswith(".dataset"))}
    if paths & facts.assigned_on:
        return True
    return any(name.startswith(_TELLING) for p in paths for name in facts.methods.get(p, ()))
