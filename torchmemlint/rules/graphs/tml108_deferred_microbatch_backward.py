"""TML108 deferred-microbatch-backward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import Backward, Collection, FileFacts, Fold, ModuleCall, WeakCall
from torchmemlint.flow.interpreter import KEPT
from torchmemlint.flow.values import LoopMark, Origin, Tensor, Via
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import history, is_test, report
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of


@dataclass(frozen=True, slots=True)
class _Gathering:
    """Losses added up or collected over the iterations of a loop."""

    site: Site
    target: str
    loop: LoopMark
    origin: Origin  # in the past of the sum
    loss: Tensor  # what one iteration brings
    collected: bool


class DeferredMicrobatchBackward(Rule):
    """The losses of several batches are summed and differentiated in one backward.

    ## What it does
    Reports a backward through the sum (or mean) of losses that a loop gathers, where each iteration runs a forward
    pass on a batch of its own: the next one of a loader, or a piece of a larger batch.

    ## Why it costs memory
    Each loss holds the graph of its forward pass, with all saved activations, until backward runs. Differentiated
    after the loop, the graphs of all iterations are alive together, so that peak memory grows with their number and
    splitting a batch into pieces saves little. The gradient of a sum is the sum of the gradients: backward in each
    iteration adds them up in `.grad`, and holds one graph at a time. Measured for three convolutions and a batch in 8
    pieces: peak 60.6 instead of 17.3 MB.

    ## Example
    ```python
    optimizer.zero_grad()
    total = 0.0
    for x, y in zip(inputs.chunk(4), targets.chunk(4)):
        total = total + criterion(model(x), y)
    (total / 4).backward()
    optimizer.step()
    ```

    ## Use instead
    ```python
    optimizer.zero_grad()
    total = 0.0
    for x, y in zip(inputs.chunk(4), targets.chunk(4)):
        loss = criterion(model(x), y) / 4  # divided by the number of steps
        loss.backward()  # gradients add up, the graph is freed
        total += loss.detach()
    optimizer.step()
    ```

    ## Fix safety
    A hint: where backward moves, and what the losses are divided by, is for the author to decide. With several
    processes, all iterations but the last belong under `no_sync()`.

    ## When it stays silent
    The iterations share a part of their graph, or one's forward pass needs another's result (layers, heads, time
    steps, recurrent states); what is differentiated is no sum or mean of the losses (a variance over them, a
    contrastive loss over all outputs); gradients of gradients are wanted; the loop passes over all batches of a loader
    before the one backward, a step on the whole data set; or it cannot be told that each iteration has a batch of its
    own.

    ## References
    - [PyTorch: automatic mixed precision examples, gradient accumulation](https://pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation)
    """

    code = "TML108"
    name = "deferred-microbatch-backward"
    severity = Severity.WARNING
    fix = Applicability.HINT
    why = "until backward runs, the saved activations of every iteration are alive at once"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield backwards that wait for the losses of several batches."""
        if is_test(facts):
            return
        reported: set[Site] = set()
        for gathering in _gatherings(facts):
            backward = _deferred(facts, gathering)
            if backward is None or backward.site in reported or not _independent(facts, gathering):
                continue
            reported.add(backward.site)
            batches = facts.micro_batches[gathering.loop]
            verb = "collects" if gathering.collected else "adds up"
            yield report(
                self,
                facts,
                backward.site,
                f"`{gathering.target}` {verb} the losses of several batches before this backward: the graphs of all "
                "of them are alive together",
                evidence=[
                    (batches.site, batches.how),
                    *history(gathering.loss.history),
                    (gathering.site, f"`{gathering.target}` {verb} the loss with its graph"),
                    (backward.site, "backward runs through all of them at once"),
                ],
                fix=Fix(
                    "Call `backward()` on each loss inside the loop, divided by the number of steps where a mean is "
                    "wanted: gradients add up in `.grad`",
                    Applicability.HINT,
                ),
            )


def _gatherings(facts: FileFacts) -> Iterator[_Gathering]:
    for fold in facts.folds:
        if fold.carry.via is Via.MODULE or not fold.folding or fold.loop not in facts.micro_batches:
            continue
        added = fold.added if fold.added is not None else fold.value
        if _feeds_on(added, fold):
            continue
        yield _Gathering(fold.site, fold.target, fold.loop, fold.origin, added, False)
    for kept in facts.collections:
        if kept.loop in facts.micro_batches and not kept.slot_overwritten and not kept.value.carried:
            yield _Gathering(kept.site, _name(kept), kept.loop, kept.kept, kept.value, True)


def _name(kept: Collection) -> str:
    return "the comprehension" if kept.how == "comprehension" else kept.container


def _feeds_on(added: Tensor, fold: Fold) -> bool:
    """Is what an iteration brings made of what an earlier one left, other than the sum?"""
    return any(carry.loop is fold.loop and carry.key != fold.key for carry in added.carried)


def _deferred(facts: FileFacts, gathering: _Gathering) -> Backward | None:
    """The one backward through the sum, which does not run in each iteration."""
    found: Backward | None = None
    for backward in facts.backwards:
        if gathering.origin not in backward.origins:
            continue
        value = backward.value
        summed = isinstance(value, Tensor) and gathering.origin in value.summed
        again = backward.retain is not None or backward.create is not None
        if found is not None or not summed or again or not _frees(backward):
            return None
        found = backward
    if found is None or not _waits(facts, found, gathering):
        return None
    return found


def _frees(backward: Backward) -> bool:
    """Is it `.backward()`, and not `autograd.grad`, whose results the code goes on with?"""
    node = backward.site.node
    return isinstance(node, cst.Call) and text_of(node.func).endswith("backward")


def _waits(facts: FileFacts, backward: Backward, gathering: _Gathering) -> bool:
    """Does it stand after a loop over some batches, or run in some of the iterations only?"""
    if gathering.loop not in backward.scope.loops:
        return not facts.micro_batches[gathering.loop].passes  # else a step on the whole data set
    around = facts.tests.get(gathering.site, ())
    return any(test not in around for test in facts.tests.get(backward.site, ()))


def _independent(facts: FileFacts, gathering: _Gathering) -> bool:
    """Does each iteration run a forward pass of its own, with nothing but parameters in common?"""
    origins = gathering.loss.origins - {gathering.origin} - facts.leaves
    everywhere: list[ModuleCall | WeakCall] = [*facts.module_calls, *facts.weak_calls]
    calls = [call for call in everywhere if call.origin in origins and gathering.loop in call.scope.loops]
    if not calls or any(_feeds_itself(call) for call in calls):
        return False
    return all(_within(facts, origin, gathering.loop) for origin in origins)


def _feeds_itself(call: ModuleCall | WeakCall) -> bool:
    """A state comes back into the call that made it."""
    return any(origin.site is call.origin.site for origin in call.input_origins)


def _within(facts: FileFacts, origin: Origin, loop: LoopMark) -> bool:
    """Is this part of the graph made anew in each iteration?"""
    if isinstance(origin.site.node, cst.Param):
        return origin not in facts.live_parameters
    if origin.site in facts.pieces:
        return True  # what is cut has origins of its own, where it has a graph
    if origin.index == KEPT or loop.site is None:
        return False
    if origin.site.piece.top is not loop.site.piece.top:
        return True  # in a function that is called from the loop
    return loop.site.span.contains(origin.site.span)
