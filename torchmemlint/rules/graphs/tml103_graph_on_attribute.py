"""TML103 graph-on-attribute."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.flow.facts import AttributeStore, CachedResult, Collection, FileFacts, Fold, Use
from torchmemlint.flow.values import Via
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import detach_fix, history, report
from torchmemlint.rules.graphs.lifetime import LEAVES_VIEW
from torchmemlint.rules.graphs.tml102_graph_collection import is_bounded, is_cache
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened, text_of


class GraphOnAttribute(Rule):
    """A graph-carrying value is kept on an object, in a global or in a cache.

    ## What it does
    Reports a tensor with its autograd graph that survives the call that made it: an attribute or global that is only
    read as numbers later, an attribute that is concatenated onto itself in every call, a cache under growing keys
    (`self.cache[f"{i}"] = out`), and `functools.lru_cache` on a function that returns such tensors.

    ## Why it costs memory
    The graph, with every activation it saved, is held until the attribute is overwritten, through the optimizer step
    and the next forward pass; a cache or an attribute that grows onto itself holds the graphs of all calls.

    ## Example
    ```python
    def forward(self, x):
        out = self.net(x)
        self.last_output = out
        return out

    def plot(self):
        return self.last_output.detach().cpu().numpy()
    ```

    ## Use instead
    ```python
        self.last_output = out.detach()
    ```

    ## Fix safety
    Safe where the stored value is only read as numbers in the file; otherwise no fix is offered.

    ## When it stays silent
    A later backward goes through the attribute (auxiliary losses), it cannot be told who reads it, or gradients are
    off.

    ## References
    - [Autograd mechanics: saved tensors](https://pytorch.org/docs/stable/notes/autograd.html#saved-tensors)
    """

    code = "TML103"
    name = "graph-on-attribute"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "the graph, with all activations that it saved, lives as long as the object that holds it"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield graphs that outlive their call."""
        hooks = {hook.function for hook in facts.hooks}
        growing: set[Site] = set()
        for fold in facts.folds:
            if fold.carry.via is Via.JOINED and fold.loop.node is None:
                finding = self._growing(facts, fold)
                if finding is not None:
                    growing.add(fold.site)
                    yield finding
        for store in facts.attribute_stores:
            if store.scope.function not in hooks:
                yield from self._stored(facts, store)
        for collection in facts.collections:
            if collection.scope.function not in hooks and is_cache(collection):
                yield from self._cache(facts, collection)
        for cached in facts.cached:
            yield self._cached(facts, cached)

    def _growing(self, facts: FileFacts, fold: Fold) -> Finding | None:
        """`self.history = torch.cat((self.history, out))`: last call's graph is part of this call's."""
        if fold.value.partly_cut:
            return None
        if not fold.value.carries_graph:
            given = frozenset(o for o in fold.value.origins if isinstance(o.site.node, cst.Param))
            if not given or Use.RETURNED not in facts.use(given):
                return None  # it is not known whether callers differentiate through this argument
        return report(
            self,
            facts,
            fold.site,
            f"`{fold.target}` is joined to its own earlier value and keeps the graphs of all calls",
            evidence=history(fold.value.history),
        )

    def _stored(self, facts: FileFacts, store: AttributeStore) -> Iterator[Finding]:
        use = facts.uses.get(store.kept, Use.NOTHING)
        if use & (LEAVES_VIEW | Use.DIFFERENTIATED | Use.COLLECTED) or not use & (Use.READ | Use.DETACHED):
            return
        fix = detach_fix(Site(store.site.piece, store.value_node)) if store.value.certain else None
        yield report(
            self,
            facts,
            store.site,
            f"`{store.target}` keeps `{shortened(text_of(store.value_node), 40)}` with its autograd graph"
            " although it is only read as numbers",
            severity=Severity.WARNING,
            evidence=history(store.value.history),
            fix=fix,
        )

    def _cache(self, facts: FileFacts, collection: Collection) -> Iterator[Finding]:
        use = facts.uses.get(collection.kept, Use.NOTHING)
        if Use.DIFFERENTIATED in use or collection.slot_overwritten or is_bounded(facts, collection):
            return
        if "clear" in facts.methods.get(collection.container, set()):
            return
        links = history(collection.value.history)
        if collection.made is not None:
            links.append((collection.made, f"`{collection.container}` is made here and outlives the call"))
        fix = detach_fix(collection.element, safe=False) if collection.value.certain else None
        yield report(
            self,
            facts,
            collection.site,
            f"`{collection.container}` caches `{shortened(text_of(collection.element.node), 40)}` with its autograd"
            " graph under every key",
            evidence=links,
            fix=fix,
        )

    def _cached(self, facts: FileFacts, cached: CachedResult) -> Finding:
        return report(
            self,
            facts,
            cached.site,
            f"results of `{cached.function.name}` are cached with their autograd graphs",
            evidence=history(cached.value.history),
        )
