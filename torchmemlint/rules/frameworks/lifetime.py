"""What becomes of a graph that a training step keeps, and of what it is kept in."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow import lightning
from torchmemlint.flow.containers import TAKING_OUT
from torchmemlint.flow.facts import Collection, FileFacts, Use
from torchmemlint.flow.values import LoopMark, Origin, Tensor
from torchmemlint.syntax.source_module import Site


def is_spent(facts: FileFacts, origins: Iterable[Origin], loop: LoopMark) -> Site | None:
    """The backward that frees the graph from all of these origins in every iteration of `loop`."""
    chosen = sorted(origins, key=lambda o: o.site.serial)
    makers = [origin for origin in chosen if origin in facts.makers]
    found: Site | None = None
    for origin in makers or chosen:
        sites = [site for site, loops in facts.spent.get(origin, ()) if loop in loops or loop.node is None]
        if sites:
            found = found or sites[0]
        elif makers:
            return None
    return found


def is_bounded(facts: FileFacts, collection: Collection) -> bool:
    """Are elements taken out of the container again, or is it replaced in the loop that fills it?"""
    store = collection.store
    if store is None:
        return False
    if collection.scope.loops and (store.oid, collection.scope.loops[-1]) in facts.begun_anew:
        return True
    if store.bounded or store.oid in facts.shrunk:
        return True
    methods = facts.methods.get(collection.container, set())
    return not methods.isdisjoint(TAKING_OUT)


def has_no_graph(facts: FileFacts, origins: Iterable[Origin]) -> bool:
    """Does the program show that there is no graph, by handing the value to numpy as it is?"""
    return bool(facts.use(frozenset(origins)) & Use.ARRAY)


def is_kept_by_step(collection: Collection) -> bool:
    """Does a Lightning `training_step` put it into a container of its module? That is TML701."""
    return collection.container.startswith("self.") and lightning.runs_in_step(collection.scope.function)


def only_kept(site: Site, element: Site) -> bool:
    """Is the value of the expression `element`, which the statement at `site` keeps, not differentiated from there on?

    That is so where the statement writes it itself. `stats = {"loss": loss}` may be read, and differentiated, before
    `history.append(stats)`: a detach there would cut that graph as well.
    """
    return site.piece.top is element.piece.top and site.piece.statement_span(site.span).contains(element.span)


def detached_where_spent(facts: FileFacts, value: Tensor, backward: Site, site: Site) -> bool:
    """`if now: loss.backward(); loss = loss.detach()`: what is kept at `site` is detached on the way that frees it."""
    around = facts.tests.get(site, ())
    return value.partly_cut and any(test not in around for test in facts.tests.get(backward, ()))
