"""TML502 empty-cache-in-loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import Backward, FileFacts, GuardedCall, ModuleCall, ServiceCall
from torchmemlint.flow.values import LoopMark
from torchmemlint.knowledge.services import EMPTY_CACHE, MEASURING
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, is_test, report
from torchmemlint.rules.removal import removing
from torchmemlint.rules.steps import always, covers
from torchmemlint.syntax.outline import dotted_text
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
            reason = next((found for call in calls if (found := _per_batch(facts, call)) is not None), None)
            if reason is None:
                continue
            statement = next((call.statement for call in calls if call.statement is not None), None)
            edits = removing(site.piece, statement) if _stands_in_it(calls) else ()
            yield report(
                self,
                facts,
                site,
                f"`{calls[0].callee}()` runs for every batch, which has to get its memory anew",
                severity=None if any(_stands_in_loop(call) for call in calls) else Severity.ADVICE,
                evidence=[reason, (site, "the cached blocks go back to the driver here")],
                fix=Fix("Leave the cache alone", Applicability.SAFE if edits else Applicability.HINT, edits),
            )


def _per_batch(facts: FileFacts, call: ServiceCall) -> Link | None:
    """What shows that the call runs for every batch."""
    loop = next((mark for mark in reversed(call.scope.loops) if mark.node is not None), None)
    if loop is None or loop.site is None:
        if call.per_batch and call.scope.function is not None and always(call.tests):
            function = call.scope.function
            return call.site, f"`{function.name}` is called for every batch"
        return None
    followed = not covers(loop.site, call.site.node)  # from the loop into a function, which has conditions of its own
    if not always([test for test in call.tests if followed or covers(loop.site, test[0])]):
        return None
    for iteration in facts.loader_iterations:
        if isinstance(loop.node, cst.For) and covers(loop.site, iteration.site.node, head=True):
            return iteration.site, "the loop runs over the batches of a loader"
    return _step_in(facts, loop)


def _stands_in_loop(call: ServiceCall) -> bool:
    return any(mark.node is not None for mark in call.scope.loops)


def _stands_in_it(calls: Sequence[ServiceCall]) -> bool:
    """Does the call stand in the loop itself, and not in a function that may be called elsewhere, too?"""
    loops = [mark.site for call in calls for mark in call.scope.loops if mark.node is not None]
    return all(loop is not None and covers(loop, call.site.node) for loop in loops for call in calls)


def _step_in(facts: FileFacts, loop: LoopMark) -> Link | None:
    """A backward or forward pass that the loop itself runs, and none of the loops in it."""
    passes: Sequence[Backward | ModuleCall | GuardedCall] = [
        *facts.backwards,
        *facts.module_calls,
        *facts.guarded_calls,
    ]
    inside = [one for one in passes if loop in one.scope.loops]
    if any(one.scope.loops[-1] is not loop and one.scope.loops[-1].node is not loop.node for one in inside):
        return None
    for one in inside:
        if isinstance(one, Backward):
            return one.site, "the loop runs a backward pass each time"
    for one in inside:
        if not isinstance(one, Backward) and not _another_each_time(one, loop):
            return one.site, "the loop runs a model each time"
    return None


def _another_each_time(call: ModuleCall | GuardedCall, loop: LoopMark) -> bool:
    """Is the module that is called taken or made anew in each iteration?"""
    if call.module is not None and loop in call.module.loops:
        return True
    node = loop.node
    root = call.callee.partition(".")[0].partition("[")[0]
    return isinstance(node, cst.For) and root in _names(node.target)


def _names(target: cst.BaseExpression) -> set[str]:
    if isinstance(target, cst.Tuple | cst.List):
        return set().union(*(_names(element.value) for element in target.elements))
    return {dotted_text(target)}
