"""TML502 empty-cache-in-loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts, ServiceCall
from torchmemlint.knowledge.services import EMPTY_CACHE, MEASURING
from torchmemlint.rules.base import Rule
from torchmemlint.rules.batches import per_batch, stands_in_loop
from torchmemlint.rules.findings import is_test, report
from torchmemlint.rules.removal import removing
from torchmemlint.rules.steps import covers
from torchmemlint.syntax.source_module import Site


class EmptyCacheInLoop(Rule):
    """The allocator's cache is emptied for every batch, which has to fill it again.

    ## What it does
    Reports `torch.cuda.empty_cache()`, and its like for other accelerators, where it runs for every batch: in a loop
    over a loader, in a loop that runs a model or a backward itself, and, as an advice, in a module's `forward` and in
    the steps that a framework calls for every batch.

    ## Why it costs memory
    It costs time, and frees nothing that the program could not use anyway: the cache holds blocks that no tensor uses,
    and the next batch's tensors would have gone there. Without them the allocator asks the driver again, and giving the
    blocks back waits for all that the device is computing. Only other processes on the same device gain.

    ## Example
    ```python
    for images, targets in loader:
        optimizer.zero_grad()
        criterion(model(images), targets).backward()
        optimizer.step()
        torch.cuda.empty_cache()
    ```

    ## Use instead
    ```python
    for images, targets in loader:
        optimizer.zero_grad()
        criterion(model(images), targets).backward()
        optimizer.step()
    ```

    ## Fix safety
    Safe: no tensor is touched. A program that runs out of memory because of fragmentation is better served by
    `PYTORCH_ALLOC_CONF=expandable_segments:True`.

    ## When it stays silent
    It runs once per epoch or around an evaluation, every so many batches or under another condition than that there is
    an accelerator; in an `except` clause; where memory is measured; between models, where the loop makes or takes
    another one each time; where nothing shows what the loop runs over; tests.

    ## References
    - [torch.cuda.empty_cache](https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html)
    - [CUDA semantics: memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    """

    code = "TML502"
    name = "empty-cache-in-loop"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    why = "the next batch asks the driver for the same blocks again, after a wait for all that the device computes"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield calls that empty the cache for every batch."""
        if is_test(facts):
            return
        measuring = {call.scope.function for call in facts.services.values() if call.qualified in MEASURING}
        by_site: dict[Site, list[ServiceCall]] = {}
        for call in facts.services.values():
            if call.qualified in EMPTY_CACHE:
                by_site.setdefault(call.site, []).append(call)
        for site, calls in by_site.items():
            if any(call.handling or call.scope.function in measuring for call in calls):
                continue
            reason = next((found for call in calls if (found := per_batch(facts, call)) is not None), None)
            if reason is None:
                continue
            statement = next((call.statement for call in calls if call.statement is not None), None)
            edits = removing(site.piece, statement) if _stands_in_it(calls) else ()
            yield report(
                self,
                facts,
                site,
                f"`{calls[0].callee}()` runs for every batch, which has to get its memory anew",
                severity=None if any(stands_in_loop(call) for call in calls) else Severity.ADVICE,
                evidence=[reason, (site, "the cached blocks go back to the driver here")],
                fix=Fix("Leave the cache alone", Applicability.SAFE if edits else Applicability.HINT, edits),
            )


def _stands_in_it(calls: Sequence[ServiceCall]) -> bool:
    """Does the call stand in the loop itself, and not in a function that may be called elsewhere, too?"""
    loops = [mark.site for call in calls for mark in call.scope.loops if mark.node is not None]
    return all(loop is not None and covers(loop, call.site.node) for loop in loops for call in calls)
