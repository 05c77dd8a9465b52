"""TML102 graph-collection."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.flow.facts import Collection, FileFacts, OddEntry, Use
from torchmemlint.flow.values import Origin
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import detach_fix, history, is_test, report
from torchmemlint.rules.graphs.lifetime import (
    LEAVES_VIEW,
    are_leaves,
    detached_where_spent,
    emptied_at,
    evaluating_call,
    has_no_graph,
    in_lambda_hook,
    in_module,
    is_bounded,
    is_kept_by_step,
    is_kept_for_backward,
    is_spent,
    is_switched,
    known_maker,
    loop_link,
    made_within,
    only_kept,
    repeats,
    severity,
    spent_link,
    trains,
    within_a_step,
)
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened, text_of


class GraphCollection(Rule):
    """A graph-carrying value is collected in a container that outlives the iteration.

    ## What it does
    Reports `losses.append(loss)`, `history["loss"].append(loss)`, `preds += [out]`, `outputs[key] = out` with a key
    that grows, and comprehensions over a loader, where the tensor put in still hangs on its autograd graph. A dict or
    tuple of statistics counts for each entry that carries a graph. In a dict that a function returns beside its loss,
    one undetached tensor among three or more detached ones is reported whoever keeps the dict.

    ## Why it costs memory
    Each element keeps its iteration's graph. Live graphs hold every saved activation: measured, 660,480 bytes per step
    for a small network (severity `error`; `warning` in a list that is made anew for each batch, or emptied after a
    rollout). Graphs that backward has run through hold their nodes on the host, and each kept CUDA scalar one 512-byte
    block on the device (severity `warning`, or `advice` where one loss is kept for each pass over the data).

    ## Example
    ```python
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        history["loss"].append(loss)
    ```

    ## Use instead
    ```python
        history["loss"].append(loss.detach())  # or loss.item()
    ```

    ## Fix safety
    Safe: the tensor is detached as it is put in. Values of a dict that was made before get no fix: it may have been
    read, and differentiated, in between.

    ## When it stays silent
    The container is bounded (`deque(maxlen=...)`, elements are popped, an empty one replaces it in the loop that fills
    it), fresh in every iteration, its elements are differentiated later, or are returned as differentiable features; a
    backward has spent the graphs of a few rounds over one batch, or comes after the loop and runs through all that the
    value hangs on; gradients are off, or a module that is not in view
    takes an option about gradients; it cannot be told what becomes of the elements; tests.

    ## References
    - [PyTorch FAQ: my model reports out of memory](https://pytorch.org/docs/stable/notes/faq.html)
    - [CUDA semantics: memory management](https://pytorch.org/docs/stable/notes/cuda.html#memory-management)
    """

    code = "TML102"
    name = "graph-collection"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "every element keeps the autograd graph of its iteration alive"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield graphs put into containers that nobody differentiates."""
        if is_test(facts):
            return
        hooks = {hook.function for hook in facts.hooks}
        reported: set[Site] = set()  # a list of lists collects an element twice
        told: set[Site] = set()  # what stands in a function of this file is told there, or for the calls of it
        for collection in (*facts.collections, *facts.near_collections):
            if collection.inside in told:
                continue
            if in_lambda_hook(collection) or collection.scope.function in hooks or collection.slot_overwritten:
                continue
            if is_cache(collection) or is_bounded(facts, collection) or is_kept_by_step(collection):
                continue
            if are_leaves(facts, collection.value.origins):
                continue  # parameters and what is computed from them alone: nothing that grows with the data
            finding = self._collection(facts, collection) if collection.element not in reported else None
            if finding is not None:
                reported.add(collection.element)
                told.add(collection.site)
                yield finding
        for entry in facts.odd_entries:
            if entry.scope.function in facts.returns_graphs:
                yield self._odd_entry(facts, entry)

    def _odd_entry(self, facts: FileFacts, entry: OddEntry) -> Finding:
        text = shortened(text_of(entry.element.node), 40)
        return report(
            self,
            facts,
            entry.element,
            f"`{text}` carries its autograd graph into a dict whose {entry.detached} other tensors are detached",
            severity=Severity.WARNING,
            evidence=history(entry.value.history),
            fix=detach_fix(entry.element) if entry.value.certain and entry.value.exact else None,
        )

    def _collection(self, facts: FileFacts, collection: Collection) -> Finding | None:
        use = facts.uses.get(collection.kept, Use.NOTHING)
        if use & (Use.DIFFERENTIATED | Use.ARRAY) or collection.value.part >= 0:
            return None
        origins = collection.value.origins - {collection.kept}
        if has_no_graph(facts, origins):
            return None
        backward = is_spent(facts, origins, collection.loop)
        if backward is not None and within_a_step(collection.loop, collection.scope):
            return None
        if backward is not None and detached_where_spent(facts, collection.value, backward, collection.site):
            return None
        if backward is None and collection.inside is not None:
            return None  # who reads it there is not in view
        if backward is None and not _live_leak(facts, collection, use):
            return None
        if not made_within(facts, origins, collection.loop, collection.scope):
            return None
        if backward is None and is_switched(facts, origins):
            return None
        if backward is None and is_kept_for_backward(facts, origins, collection.loop, collection.scope):
            return None
        if backward is None and facts.enters_without_gradients(collection.scope.function):
            return None
        links = history(collection.value.history)
        if collection.element.node is not collection.site.node:
            links.append((collection.site, f"goes into `{collection.container}` here"))
        if collection.inside is not None:
            links.append((collection.inside, "which puts it into a container"))
        if backward is not None:
            links.append(spent_link(facts, backward))
        emptied = emptied_at(collection)
        if collection.made is not None:
            until = " until an empty one takes its place" if emptied is not None else ""
            links.append(
                (collection.made, f"`{collection.container}` is made here and keeps all that is put in{until}")
            )
        if emptied is not None:
            links.append((emptied, "which happens here"))
        links += loop_link(collection.loop, "once for each iteration of this loop")
        value = collection.value
        is_only_kept = only_kept(collection.site, collection.element, backward)
        fix = detach_fix(collection.element) if is_only_kept and value.certain and value.exact else None
        text = shortened(text_of(collection.element.node), 40)
        return report(
            self,
            facts,
            collection.element,
            f"`{collection.container}` collects `{text}` with its autograd graph in every {repeats(collection.loop)}"
            + (" (spent by backward)" if backward is not None else " (live: no backward frees it)"),
            severity=_severity(facts, collection, origins, backward, emptied),
            evidence=links,
            fix=fix,
        )


def _severity(
    facts: FileFacts, collection: Collection, origins: frozenset[Origin], backward: Site | None, emptied: Site | None
) -> Severity:
    found = severity(facts, origins, collection.loop, collection.scope, backward)
    return Severity.WARNING if found is Severity.ERROR and emptied is not None else found


def is_cache(collection: Collection) -> bool:
    """A dict that outlives the call, filled under a key: TML103's business."""
    return collection.how.endswith("=") and collection.how != "+=" and collection.loop.node is None


def _live_leak(facts: FileFacts, collection: Collection, use: Use) -> bool:
    """Is it certain that nobody differentiates the elements, though no backward was seen?"""
    if in_module(collection.scope):
        return False
    evaluating = evaluating_call(facts, collection.value.origins)
    if evaluating is not None and not trains(facts, collection.scope):
        return True
    if trains(facts, collection.scope) and not known_maker(facts, collection.value.origins):
        return False
    read = bool(use & (Use.READ | Use.DETACHED))
    return read and not use & LEAVES_VIEW
