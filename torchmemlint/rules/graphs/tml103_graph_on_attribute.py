"""TML103 graph-on-attribute."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow import keeping
from torchmemlint.flow.facts import (
    AttributeStore,
    CachedResult,
    Collection,
    FileFacts,
    ModuleCall,
    ReturnedGraph,
    Use,
    WeakCall,
)
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import detach_fix, history, is_test, report
from torchmemlint.rules.graphs.lifetime import (
    LEAVES_VIEW,
    are_leaves,
    emptied_at,
    has_no_graph,
    in_module,
    is_bounded,
    is_kept_by_step,
    is_spent,
    known_maker,
    only_kept,
    spent_link,
    trains,
)
from torchmemlint.rules.graphs.tml102_graph_collection import is_cache
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened, text_of

_LEAVES = frozenset({"requires_grad", "parameter"})  # made by nothing: only what is computed from them has a graph


_COPIES = frozenset({"clone", "cpu", "to"})


class GraphOnAttribute(Rule):
    """A graph-carrying value is kept on an object, in a global or in a cache.

    ## What it does
    Reports a tensor with its autograd graph that survives the call that made it: an attribute or global that is only
    read as numbers later, an attribute that is concatenated onto itself in every call, a cache under growing keys
    (`self.cache[f"{i}"] = out`), and `functools.lru_cache` on a function that returns such tensors. Where a function
    returns the tensor that it has just differentiated, and a caller in the project keeps it on its object, the `return`
    is reported.

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
    A later backward goes through the attribute (auxiliary losses), it cannot be told who reads it (the state of a
    module that is called afterwards, an attribute that only the module's method that sets it looks at), or gradients
    are off; a dictionary of an object that has a `backward` of its own. An advice where the function does not train
    and nothing shows that there is a graph (for a cache: no module that is known made it): who else reads it may be
    in another file.

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
        if is_test(facts):
            return
        hooks = {hook.function for hook in facts.hooks}
        for store in facts.attribute_stores:
            if store.scope.function not in hooks:
                yield from (found for found in self._stored(facts, store) if not _folds(facts, store.site))
        for collection in facts.collections:
            if is_kept_by_step(collection):
                continue
            if collection.scope.function not in hooks and is_cache(collection) and collection.inside is None:
                yield from (found for found in self._cache(facts, collection) if not _folds(facts, collection.site))
        for cached in facts.cached:
            if not facts.enters_without_gradients(cached.function):
                yield self._cached(facts, cached)

        for returned in facts.returned_graphs.values():
            yield from self._returned(facts, returned)

    def _returned(self, facts: FileFacts, returned: ReturnedGraph) -> Iterator[Finding]:
        """A tensor that the function has differentiated, and that a caller in the project keeps on its object."""
        function = returned.scope.function
        spent = _spent_before(facts, returned)
        if spent is None or function is None or facts.callers is None:
            return
        kept = keeping.on_object(facts.callers, function, returned.index)
        if kept is None:
            return
        yield report(
            self,
            facts,
            returned.site,
            f"`{function.name}` returns `{shortened(text_of(returned.site.node), 40)}` with its spent graph,"
            f" and `{kept.function.qualname}` keeps it in `{kept.attribute}`",
            severity=Severity.WARNING,
            evidence=[
                *history(returned.value.history),
                (spent, "it is differentiated here, and cannot be again: its graph is of no more use"),
                (returned.site, "it is returned with what is left of the graph"),
            ],
            fix=detach_fix(returned.site) if returned.value.certain and returned.value.exact else None,
        )

    def _stored(self, facts: FileFacts, store: AttributeStore) -> Iterator[Finding]:
        use = facts.uses.get(store.kept, Use.NOTHING)
        if store.value.part >= 0 or store.value.producer in _LEAVES:
            return  # a part of a tensor, a leaf: no graph hangs on these
        if store.value.producer in _COPIES and are_leaves(facts, store.value.origins):
            return  # `[p.clone() for p in parameters]`: all that hangs on them is the parameters
        if use & (LEAVES_VIEW | Use.DIFFERENTIATED | Use.COLLECTED | Use.ARRAY) or not use & (Use.READ | Use.DETACHED):
            return
        if (
            _is_state_of_a_module(facts, store)
            or _is_for_others(facts, store)
            or facts.enters_without_gradients(store.scope.function)
        ):
            return
        here = store.value_site.piece is store.site.piece  # and not where others may differentiate it
        fix = detach_fix(store.value_site) if store.value.certain and here else None
        yield report(
            self,
            facts,
            store.site,
            f"`{store.target}` keeps `{shortened(text_of(store.value_site.node), 40)}` with its autograd graph"
            " although it is only read as numbers",
            severity=Severity.WARNING if trains(facts, store.scope) else Severity.ADVICE,
            evidence=history(store.value.history),
            fix=fix,
        )

    def _cache(self, facts: FileFacts, collection: Collection) -> Iterator[Finding]:
        use = facts.uses.get(collection.kept, Use.NOTHING)
        if Use.DIFFERENTIATED in use or collection.slot_overwritten or is_bounded(facts, collection):
            return
        if collection.value.producer in _LEAVES or are_leaves(facts, collection.value.origins):
            return
        spent = is_spent(facts, collection.value.origins - {collection.kept}, collection.loop)
        if (spent is None and in_module(collection.scope)) or has_no_graph(facts, collection.value.origins):
            return
        if not _outlives_calls(collection) or _is_list(collection):
            return
        if "clear" in facts.methods.get(collection.container, set()) or emptied_at(collection) is not None:
            return
        function = collection.scope.function
        if function is not None and function.cls is not None and function.cls.method("backward") is not None:
            return  # the object is the loss of a batch
        if spent is None and facts.enters_without_gradients(collection.scope.function):
            return
        links = history(collection.value.history)
        if spent is not None:
            links.append(spent_link(facts, spent))
        if collection.made is not None:
            links.append((collection.made, f"`{collection.container}` is made here and outlives the call"))
        proven = known_maker(facts, collection.value.origins) and not _hangs_on_leaves(facts, collection)
        is_only_kept = only_kept(collection.site, collection.element, spent)
        fix = detach_fix(collection.element, safe=False) if is_only_kept and collection.value.certain else None
        yield report(
            self,
            facts,
            collection.site,
            f"`{collection.container}` caches `{shortened(text_of(collection.element.node), 40)}` with its autograd"
            " graph under every key",
            severity=Severity.WARNING if spent is not None or proven else Severity.ADVICE,
            evidence=links,
            fix=fix,
        )

    def _cached(self, facts: FileFacts, cached: CachedResult) -> Finding:
        return report(
            self,
            facts,
            cached.value.made or cached.site,
            f"`{cached.function.name}` is cached: every result is kept with its autograd graph",
            fix=_detach_result(cached),
            evidence=[*history(cached.value.history), (cached.site, "every result is kept by this decorator")],
        )


def _hangs_on_leaves(facts: FileFacts, collection: Collection) -> bool:
    """Is a graph known of the parameters among the entries alone? Views of them have none that is worth a word."""
    leaves = {origin.site for origin in facts.leaves}
    ran = not facts.makers.isdisjoint(collection.value.origins)
    return not ran and all(step.site in leaves for step in collection.value.history)


def _is_state_of_a_module(facts: FileFacts, store: AttributeStore) -> bool:
    """`decoder.hidden = h` before `decoder(x)`: the forward of a module that is not in view may read it."""
    owner = store.target.rpartition(".")[0]
    calls: list[ModuleCall | WeakCall] = [*facts.module_calls, *facts.weak_calls]
    return owner not in ("", "self") and any(call.callee == owner for call in calls)


def _is_for_others(facts: FileFacts, store: AttributeStore) -> bool:
    """An attribute that only the module's method that sets it looks at: it is there for who trains the module."""
    if not in_module(store.scope):
        return False
    readers = (
        function
        for function, uses in facts.uses_in.items()
        if function is not store.scope.function and uses.get(store.kept, Use.NOTHING) & (Use.READ | Use.DETACHED)
    )
    return all(reader is not None and store.attribute not in reader.outline.names for reader in readers)


def _detach_result(cached: CachedResult) -> Fix | None:
    """Detach what the cached function returns: unsafe, a caller could differentiate the first use of each result."""
    made = cached.value.made
    return detach_fix(made, safe=False) if made is not None and cached.value.exact else None


def _spent_before(facts: FileFacts, returned: ReturnedGraph) -> Site | None:
    """The differentiation of just this tensor that has freed its graph on the way to where it is returned."""
    around = facts.tests.get(returned.site, ())
    for backward in facts.backwards:
        if backward.scope.function is not returned.scope.function or backward.value_site is None:
            continue
        is_freed = any(site is backward.site for freed in facts.spent.values() for site, _ in freed)
        is_same = backward.value_site is returned.value.made and backward.scope.loops == returned.scope.loops
        always = all(test in around for test in facts.tests.get(backward.site, ()))
        if is_freed and is_same and always and backward.site.span.end <= returned.site.span.start:
            return backward.site
    return None


def _folds(facts: FileFacts, site: Site) -> bool:
    """Does the line fold a value over iterations or calls? That is TML101."""
    row = site.span.start.row
    return any(fold.site.span.start.row == row for fold in facts.folds)


def _is_list(collection: Collection) -> bool:
    """`self.keys[layer] = k` replaces what a list held there: it has as many elements as before."""
    return collection.store is not None and collection.store.kind == "list"


def _outlives_calls(collection: Collection) -> bool:
    """Is the dict an attribute, or made at module level (and not one that was merely handed in)?"""
    function = collection.scope.function
    root = collection.container.partition(".")[0].partition("[")[0]
    on_object = function is not None and function.cls is not None and root in ("self", "cls", function.cls.name)
    return on_object or (collection.made is not None and collection.made.piece.kind == "code")
