"""TML101 graph-accumulation."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.flow.facts import FileFacts, Fold, Use
from torchmemlint.flow.values import Mode, Via
from torchmemlint.knowledge import torch_api
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import detach_fix, history, is_test, report
from torchmemlint.rules.graphs.lifetime import (
    LEAVES_VIEW,
    detached_where_spent,
    evaluating_call,
    has_no_graph,
    in_forward,
    in_module,
    is_spent,
    is_switched,
    known_maker,
    loop_link,
    made_within,
    repeats,
    severity,
    spent_link,
    trains,
    within_a_step,
)
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened, text_of


class GraphAccumulation(Rule):
    """A graph-carrying value is added up over iterations.

    ## What it does
    Reports a name, attribute, subscript or meter that lives longer than one iteration and into which a tensor is
    folded together with its autograd graph: `total += loss`, `ema = 0.9 * ema + 0.1 * loss`,
    `meter.update(loss)` where `update` adds up its argument.

    ## Why it costs memory
    The running value hangs on the graph of every iteration so far. Where no backward has run through them, each graph
    still holds all its saved activations: measured, 661,508 bytes per step for a small network, on the device, in a
    straight line (severity `error`). Where backward has run, the saved activations are gone and the graph's nodes
    stay: nothing on the device, 19 KB of host memory per step for 8 layers, 71 KB for 32 (severity `warning`, or
    `advice` where one loss is kept for each pass over the data).

    ## Example
    ```python
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss
    ```

    ## Use instead
    ```python
        total += loss.detach()  # stays on the device, no synchronisation
        total += loss.item()  # a Python number, waits for the device
    ```

    ## Fix safety
    Safe: the added tensor is detached. Its value, device and type stay as they were.

    ## When it stays silent
    The sum, or anything computed from it, is differentiated; it is bound inside the same iteration; gradients are off,
    or a module that is not in view takes an option about gradients; the value is a number, detached, integer or
    boolean; a backward has spent the graphs of a few rounds over one batch; it cannot be told what becomes of the
    sum; tests.

    ## References
    - [PyTorch FAQ: my model reports out of memory](https://pytorch.org/docs/stable/notes/faq.html)
    """

    code = "TML101"
    name = "graph-accumulation"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "the running value keeps the autograd graph of every iteration alive"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield folds of graphs that nobody differentiates."""
        if is_test(facts):
            return
        told: set[Site] = set()  # what stands in a function of this file is told there, or for the calls of it
        for fold in (*facts.folds, *facts.near_folds):
            if fold.inside in told:
                continue
            if fold.carry.via is Via.MODULE or not fold.folding or fold.scope.mode is Mode.OFF:
                continue
            if fold.value.carries_graph or _returned_with(facts, fold):
                found = list(self._fold(facts, fold))
                told.update([fold.site] if found else [])
                yield from found

    def _fold(self, facts: FileFacts, fold: Fold) -> Iterator[Finding]:
        use = facts.uses.get(fold.origin, Use.NOTHING)
        if use & (Use.DIFFERENTIATED | Use.ARRAY) or fold.value.part >= 0:
            return
        added = fold.added if fold.added is not None and fold.added.carries_graph else fold.value
        origins = added.origins - {fold.origin}
        if has_no_graph(facts, origins):
            return
        backward = is_spent(facts, origins, fold.loop)
        evaluating = evaluating_call(facts, origins)
        if backward is not None and within_a_step(fold.loop, fold.scope):
            return
        if backward is not None and detached_where_spent(facts, added, backward, fold.site):
            return
        if backward is None and fold.inside is not None:
            return  # who reads it there is not in view
        if backward is None and not self._live_leak(facts, fold, use, evaluating is not None):
            return
        if not made_within(facts, origins, fold.loop, fold.scope):
            return
        if backward is None and is_switched(facts, origins):
            return
        if backward is None and facts.enters_without_gradients(fold.scope.function):
            return
        links = history(added.history)
        site = fold.site
        if not fold.value.carries_graph and fold.value.made is not None:
            links.append((fold.value.made, "joins an argument, with its graph, onto what earlier calls have left"))
        if backward is not None:
            links.append(spent_link(facts, backward))
        links += [(fold.inside, "folds it into what it holds already")] if fold.inside is not None else []
        links += loop_link(fold.loop, f"`{fold.target}` lives across the iterations of this loop")
        spent = backward is not None
        fix = None
        if fold.added_node is not None and fold.added is not None and fold.added.carries_graph:
            place = Site(site.piece, fold.added_node)
            if fold.added.certain and fold.added.exact:
                fix = detach_fix(place)
        what = f"`{shortened(text_of(fold.added_node), 40)}`" if fold.added_node is not None else f"`{fold.target}`"
        if fold.added_node is None and fold.inside is not None:
            what = "its argument"
        yield report(
            self,
            facts,
            site,
            f"`{fold.target}` accumulates {what} with its autograd graph over every {repeats(fold.loop)}"
            + (" (spent by backward)" if spent else " (live: no backward frees it)"),
            severity=severity(facts, origins, fold.loop, fold.scope, backward),
            evidence=links,
            fix=fix,
        )

    def _live_leak(self, facts: FileFacts, fold: Fold, use: Use, evaluating: bool) -> bool:
        """Is it certain that nobody differentiates the sum, though no backward was seen?"""
        if evaluating and not trains(facts, fold.scope) and not in_forward(fold.scope):
            # `x = step(x)` is TML201's alone.
            return fold.augmented or (fold.added is not None and fold.added.carries_graph)
        if fold.carry.via is Via.JOINED and fold.loop.node is None:
            # An attribute that another method assigns too is a state with a life of its own.
            others = set() if isinstance(fold.key, str) else facts.writers.get(fold.key, set())
            return not others - {fold.scope.function}
        if in_module(fold.scope):
            return False
        added = fold.added.origins if fold.added is not None else fold.value.origins - {fold.origin}
        added = frozenset(o for o in added if not isinstance(o.site.node, cst.Param))
        if added and added <= facts.leaves:
            hidden = LEAVES_VIEW if isinstance(fold.key, str) else Use.RETURNED | Use.PASSED
            return not use & hidden  # an average over parameters, which nothing frees
        if not isinstance(fold.key, str) or fold.loop.node is None:
            return False  # an attribute or global: others may differentiate it
        if trains(facts, fold.scope) and not known_maker(facts, fold.value.origins):
            return False
        return bool(use & (Use.READ | Use.DETACHED)) and not use & LEAVES_VIEW


_JOINING = torch_api.JOINERS | {"getitem"}  # and the newest of them


def _returned_with(facts: FileFacts, fold: Fold) -> bool:
    """A loss module that joins its argument onto its own history, and returns what it makes of it."""
    if fold.carry.via is not Via.JOINED or fold.loop.node is not None:
        return False
    if fold.value.producer not in _JOINING:
        return False  # a state that is computed from the one before
    cls = fold.scope.function.cls if fold.scope.function is not None else None
    if cls is None or cls.builds_layers:
        return False  # not a loss: a layer's buffer
    given = frozenset(o for o in fold.value.origins if isinstance(o.site.node, cst.Param))
    return bool(given) and Use.RETURNED in facts.use(given)
