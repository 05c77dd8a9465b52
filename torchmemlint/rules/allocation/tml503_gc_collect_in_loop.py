"""TML503 gc-collect-in-loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts, ServiceCall
from torchmemlint.knowledge.services import COLLECT, COLLECTOR_CHOSEN, MEASURING
from torchmemlint.rules.base import Rule
from torchmemlint.rules.batches import per_batch
from torchmemlint.rules.findings import is_test, report
from torchmemlint.syntax.source_module import Site


class GcCollectInLoop(Rule):
    """The garbage collector looks at every object of the program for every batch.

    ## What it does
    Reports `gc.collect()` where it runs for every batch: in a loop over a loader, in a loop that runs a model or a
    backward itself, in a module's `forward`, and in the steps that a framework calls for every batch.

    ## Why it costs memory
    It costs time, and mostly frees nothing. A tensor goes when the last reference to it goes, without the collector,
    which is there for objects that refer to each other in circles. A full collection visits every object that there is:
    with torch and a few libraries loaded these are hundreds of thousands, and the device runs out of work meanwhile.
    Where it does free memory each time, something makes such circles, and is worth finding: an exception that is kept,
    a closure that holds itself, a module that refers to its owner.

    ## Example
    ```python
    for images, targets in loader:
        loss = criterion(model(images), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        gc.collect()
    ```

    ## Use instead
    ```python
    for images, targets in loader:
        loss = criterion(model(images), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    ```

    ## Fix safety
    There is none: if a circle holds tensors, the memory would grow until the collector runs by itself.

    ## When it stays silent
    It runs once per epoch or around an evaluation, every so many batches or under another condition than that there is
    an accelerator; it looks at the young objects only (`gc.collect(0)`); the file turns the collector off, tunes or
    freezes it, and so chooses when it runs; in an `except` clause; where memory is measured; between models, where the
    loop makes or takes another one each time; where nothing shows what the loop runs over; tests.

    ## References
    - [gc: garbage collector interface](https://docs.python.org/3/library/gc.html)
    - [PyTorch FAQ: my model reports out of memory](https://docs.pytorch.org/docs/stable/notes/faq.html)
    """

    code = "TML503"
    name = "gc-collect-in-loop"
    severity = Severity.ADVICE
    fix = Applicability.HINT
    why = "a tensor goes with its last reference; a full collection visits every object of the program meanwhile"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield full collections for every batch."""
        calls = [call for call in facts.services.values() if call.qualified in COLLECT and _is_full(call)]
        if is_test(facts) or not calls:
            return
        if any(call.qualified in COLLECTOR_CHOSEN for call in facts.services.values()):
            return
        measuring = {call.scope.function for call in facts.services.values() if call.qualified in MEASURING}
        by_site: dict[Site, list[ServiceCall]] = {}
        for call in calls:
            by_site.setdefault(call.site, []).append(call)
        for site, several in by_site.items():
            if any(call.handling or call.scope.function in measuring for call in several):
                continue
            reason = next((found for call in several if (found := per_batch(facts, call)) is not None), None)
            if reason is None:
                continue
            yield report(
                self,
                facts,
                site,
                f"`{several[0].callee}()` visits every object of the program for every batch",
                evidence=[reason, (site, "a full collection runs here")],
                fix=Fix("Collect once per epoch, or leave it to the collector", Applicability.HINT),
            )


def _is_full(call: ServiceCall) -> bool:
    node = call.site.node
    return isinstance(node, cst.Call) and not node.args
