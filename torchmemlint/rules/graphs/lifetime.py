"""Questions that the rules about kept graphs share."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from torchmemlint.findings import Severity
from torchmemlint.flow import lightning
from torchmemlint.flow.containers import TAKING_OUT
from torchmemlint.flow.facts import Collection, FileFacts, ModuleCall, Scope, Use, WeakCall
from torchmemlint.flow.interpreter import FOLDED, KEPT
from torchmemlint.flow.modules import HOOK_LABEL
from torchmemlint.flow.values import LoopMark, Loops, Origin, Tensor
from torchmemlint.rules.findings import Link
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.walking import inside

_COUNTING = frozenset({"range", "trange", "count"})
LEAVES_VIEW = Use.RETURNED | Use.PASSED | Use.STORED


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


def is_kept_for_backward(facts: FileFacts, origins: Iterable[Origin], loop: LoopMark, scope: Scope) -> bool:
    """Does a backward that comes when `loop` has ended run through all of these forward passes anyway?

    Their graphs live until then, for what else was kept of them; one more value on them adds next to nothing.
    """
    makers = [origin for origin in origins if origin in facts.makers]
    if not makers or loop not in scope.loops:
        return False
    around = scope.loops[: scope.loops.index(loop)]
    return all(any(_comes_after(site, at, loop, around) for site, at in facts.spent.get(o, ())) for o in makers)


def _comes_after(backward: Site, at: Loops, loop: LoopMark, around: Loops) -> bool:
    if around:
        return bool(at) and at == around[: len(at)]
    return not at and loop.site is not None and backward.piece.top is loop.site.piece.top


def within_a_step(loop: LoopMark, scope: Scope) -> bool:
    """Is it a loop of a few rounds over one batch, `for _ in range(n):` in the loop that takes the batches?

    What a backward has spent, and the next batch replaces, is too little to speak of there.
    """
    if loop not in scope.loops or not counts(loop):
        return False
    outer = scope.loops[: scope.loops.index(loop)]
    return bool(outer) and isinstance(outer[-1].node, cst.For) and _is_over_data(outer[-1].node.iter)


def severity(
    facts: FileFacts, origins: Iterable[Origin], loop: LoopMark, scope: Scope, backward: Site | None
) -> Severity:
    """How bad it is to keep these graphs in every iteration of a loop, spent by a backward or live (None).

    An advice is what the last step of an inner loop has left: one spent graph for each pass over the data. What is
    made anew for each batch does not grow beyond one.
    """
    if backward is None:
        return Severity.WARNING if within_a_step(loop, scope) else Severity.ERROR
    around = [loops for origin in origins for _, loops in facts.spent.get(origin, ()) if loop in loops]
    once_a_pass = bool(around) and all(loops[-1] is not loop and loops[-1] not in scope.loops for loops in around)
    return Severity.ADVICE if once_a_pass else Severity.WARNING


def counts(loop: LoopMark) -> bool:
    """`for i in range(n)`."""
    return isinstance(loop.node, cst.For) and not _is_over_data(loop.node.iter)


def _is_over_data(iterated: cst.BaseExpression) -> bool:
    """Neither numbers nor what is written down in place."""
    if isinstance(iterated, cst.List | cst.Tuple):
        return False
    return not any(isinstance(node, cst.Name) and node.value in _COUNTING for node in inside(iterated))


def spent_link(facts: FileFacts, backward: Site) -> Link:
    """Evidence for a backward that frees a graph, which may be that of a caller."""
    call = facts.given_to_backward.get(backward)
    if call is None:
        return backward, "backward runs here: the saved tensors are freed, the graph's nodes stay"
    caller = f"`{call.function.qualname}`" if call.function is not None else f"`{call.program.source.path.name}`"
    return backward, f"{caller} runs a backward through what it gets: the saved tensors are freed, the nodes stay"


def evaluating_call(facts: FileFacts, origins: Iterable[Origin]) -> ModuleCall | None:
    """A forward pass among these origins that runs a module in evaluation mode."""
    wanted = set(origins)
    for call in facts.module_calls:
        if call.origin in wanted and call.evaluating is not None:
            return call
    return None


def made_within(facts: FileFacts, origins: Iterable[Origin], loop: LoopMark, scope: Scope) -> bool:
    """Is a part of the graph made anew in each iteration (and not only sliced from one that stands outside)?"""
    if loop.site is None:
        return True
    if not facts.renewed.get(loop, set()).isdisjoint(origins):
        return True
    around = loop.site.span
    given = any(origin in facts.live_parameters for origin in origins)
    inside = facts.given_inside.get(scope.function, set()) if scope.function is not None else set()
    handed = facts.handed_in.get(scope.function, set()) if scope.function is not None else set()
    data = any(origin in facts.makers and origin.site.piece.top is loop.site.piece.top for origin in origins)
    for origin in origins:
        known = any(origin in group for group in (facts.makers, facts.weak_makers, facts.entry_makers, facts.leaves))
        if origin.site.piece.top is not loop.site.piece.top:
            if given or origin in inside or origin in handed or origin in facts.leaves:
                continue  # it came in as an argument
            if not known and data:
                continue  # what a forward pass of this function worked on
            return True
        if known and around.contains(origin.site.span):
            return True
    return False


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


def emptied_at(collection: Collection) -> Site | None:
    """Where an empty list or dict takes the place of the one that is filled: `self.values = []` after a rollout."""
    store = collection.store
    taking = [other for other in store.others if other.made not in (None, collection.made)] if store is not None else []
    return next((other.made for other in taking if other.items == () or _is_empty_dict(other.made)), None)


def _is_empty_dict(made: Site | None) -> bool:
    return made is not None and isinstance(made.node, cst.Dict) and not made.node.elements


def in_module(scope: Scope) -> bool:
    """A method of an `nn.Module`: whoever runs it decides whether there is a graph, and differentiates its results."""
    function = scope.function
    return function is not None and function.cls is not None and function.cls.is_module


def is_part(call: ModuleCall | WeakCall) -> bool:
    """Does a module run a part of itself? It is part of a forward pass then: whoever runs the whole decides.

    `self.forward(x)` in another method of the module is an entrance, and no part.
    """
    cls = call.scope.function.cls if call.scope.function is not None else None
    itself = isinstance(call, ModuleCall) and call.module is not None and cls is not None and call.module.oid == cls.oid
    return in_module(call.scope) and not itself


def in_forward(scope: Scope) -> bool:
    """The forward of an `nn.Module`: what it computes with is wanted with its graph by whoever runs it."""
    return in_module(scope) and scope.function is not None and scope.function.name == "forward"


def has_no_graph(facts: FileFacts, origins: Iterable[Origin]) -> bool:
    """Does the program show that there is no graph, by handing the value to numpy as it is?"""
    return bool(facts.use(frozenset(origins)) & Use.ARRAY)


def are_leaves(facts: FileFacts, origins: Iterable[Origin]) -> bool:
    """Are they parameters, and what was handed in beside such: nothing of which it is known that it has a graph?"""
    made = {origin for origin in origins if origin.index not in (FOLDED, KEPT)}
    known = {origin for origin in made if not isinstance(origin.site.node, cst.Param)}
    return known <= facts.leaves and (bool(known) or not made)


def is_kept_by_step(collection: Collection) -> bool:
    """Does a Lightning `training_step` put it into a container of its module? That is TML701."""
    return collection.container.startswith("self.") and lightning.runs_in_step(collection.scope.function)


def only_kept(site: Site, element: Site, backward: Site | None = None) -> bool:
    """Is the value of the expression `element`, which the statement at `site` keeps, not differentiated from there on?

    That is so where the statement writes it itself, and where it comes after the backward. `stats = {"loss": loss}` may
    be read, and differentiated, before `history.append(stats)`: a detach there would cut that graph as well.
    """
    span = element.span
    if site.piece.top is element.piece.top:
        statement = site.piece.statement_span(site.span)
        if statement.contains(span):
            return True
    return backward is not None and backward.piece is element.piece and backward.span.end <= span.start


def known_maker(facts: FileFacts, origins: Iterable[Origin]) -> bool:
    """Is the graph of a forward pass in view (and not, say, of what a hook was given)?"""
    return any(origin in facts.makers or origin in facts.weak_makers for origin in origins)


def is_switched(facts: FileFacts, origins: Iterable[Origin]) -> bool:
    """Does a module that is not in view take an option that turns its gradients on or off?

    `q = critic(batch, compute_grads=True)` beside `critic(batch)`: what the latter returns may have no graph.
    """
    wanted = set(origins)
    called = {call.callee for call in facts.module_calls if call.origin in wanted and _is_out_of_view(call)}
    return any(call.callee in called and _names_gradients(call.site.node) for call in facts.module_calls)


def _is_out_of_view(call: ModuleCall) -> bool:
    return call.module is not None and call.module.cls is None and not call.module.qualified


def _names_gradients(call: cst.CSTNode) -> bool:
    keywords = [arg.keyword.value for arg in call.args if arg.keyword] if isinstance(call, cst.Call) else []
    return any("grad" in keyword for keyword in keywords)


def trains(facts: FileFacts, scope: Scope) -> bool:
    """Does the function run a backward or an optimizer step?"""
    return bool(facts.effects.get(scope.function, set()) & {"backward", "step"})


def detached_where_spent(facts: FileFacts, value: Tensor, backward: Site, site: Site) -> bool:
    """`if now: loss.backward(); loss = loss.detach()`: what is kept at `site` is detached on the way that frees it."""
    around = facts.tests.get(site, ())
    return value.partly_cut and any(test not in around for test in facts.tests.get(backward, ()))


def loop_link(loop: LoopMark, what: str) -> list[Link]:
    """Evidence for what repeats."""
    if loop.site is None:
        return []
    return [(loop.site, what)]


def repeats(loop: LoopMark) -> str:
    """What repeats, in words."""
    return "iteration" if loop.node is not None else "call"


def in_lambda_hook(collection: Collection) -> bool:
    """Is it the body of a lambda that is registered as a hook?"""
    return any(mark.label == HOOK_LABEL for mark in collection.scope.loops)
