"""TML104 carried-hidden-state."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import Backward, FileFacts, Fold
from torchmemlint.flow.program import Function
from torchmemlint.flow.values import ModuleValue, Via
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import detach_fix, history, is_test, report
from torchmemlint.rules.graphs.lifetime import loop_link
from torchmemlint.syntax.outline import dotted
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of


class CarriedHiddenState(Rule):
    """A recurrent state enters the next step with the graph of the last one.

    ## What it does
    Reports `out, h = rnn(x, h)` in a loop that also runs backward on the result, where no path detaches the state
    between two iterations.

    ## Why it costs memory
    Step n+1's graph contains step n's. Without `retain_graph` the second backward raises ("Trying to backward through
    the graph a second time"); with it, every step keeps all earlier ones alive: measured, 491,520 bytes per step for a
    small network, and time that grows with the number of steps.

    ## Example
    ```python
    h = None
    for x, y in loader:
        out, h = rnn(x, h)
        loss = criterion(out, y)
        loss.backward(retain_graph=True)
        optimizer.step()
    ```

    ## Use instead
    ```python
        out, h = rnn(x, h)
        h = h.detach()  # of an LSTM: tuple(s.detach() for s in h)
    ```

    ## Fix safety
    Safe where the carried graph is already spent: the program raises today, and runs with the state detached as it
    enters the module. Where `retain_graph=True` keeps it running, no fix is offered: cutting the history is truncated
    backpropagation, which changes the results.

    ## When it stays silent
    The state is detached on some path (truncated backpropagation every k steps), is made afresh in each iteration, or
    the losses of the whole sequence are differentiated after the loop; the module may detach it: a class of the project
    that mentions `detach` or `no_grad`, or a module that is not known, where no `retain_graph` keeps the program
    running; tests.

    ## References
    - [pytorch#2198](https://github.com/pytorch/pytorch/issues/2198)
    """

    code = "TML104"
    name = "carried-hidden-state"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "the graph of every earlier step hangs on the state of the current one"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield states carried through a module inside a loop that differentiates."""
        if is_test(facts):
            return
        for fold in facts.folds:
            if fold.carry.via is not Via.MODULE or fold.value.partly_cut or not fold.value.carries_graph:
                continue
            backward = _backward_in_loop(facts, fold)
            if backward is None or _reset_elsewhere(facts, fold):
                continue
            kept = backward.retain is not None or backward.create is not None
            if _may_cut(facts, fold, kept) or _is_given_to_a_cut(facts, fold):
                continue
            links = history(fold.value.history)
            links.append((backward.site, "backward runs in the same loop, through the state's graph"))
            links += loop_link(fold.loop, f"`{fold.target}` comes from the previous iteration, never detached")
            yield report(
                self,
                facts,
                fold.site,
                f"`{fold.target}` carries its graph from step to step: "
                + (
                    "with the retained graph, every step keeps all earlier ones"
                    if kept
                    else "the second backward goes through a graph that the first has freed, and raises"
                ),
                evidence=links,
                fix=None if kept else _detach_argument(fold),
            )


_CUTS = frozenset(("detach", "detach_", "no_grad", "inference_mode", "data"))


def _may_cut(facts: FileFacts, fold: Fold, kept: bool) -> bool:
    """May the module return its state without a graph?

    One of the project does where its class mentions a detach. One that is not known may: where the graph is not even
    retained, the second step would raise, so a program that has run once shows that it does.
    """
    calls = [call for call in facts.module_calls if call.origin in fold.value.origins]
    return any(_cuts(call.module, kept) for call in calls if call.module is not None)


def _is_given_to_a_cut(facts: FileFacts, fold: Fold) -> bool:
    """`detach_memories_(state)` at times: a function that cuts what it is given, or says so by its name."""
    function = fold.scope.function
    if function is None:
        return False
    for node in function.outline.nodes:
        if isinstance(node, ast.Call) and any(dotted(argument) == fold.target for argument in node.args):
            path = dotted(node.func)
            found = facts.program.find_function(path) or facts.program.resolve(facts.program.qualify(path))
            if "detach" in path or (isinstance(found, Function) and not _CUTS.isdisjoint(found.outline.names)):
                return True
    return False


def _cuts(module: ModuleValue, kept: bool) -> bool:
    if module.cls is None:
        return not module.qualified and not kept
    methods = (method for cls in module.cls.ancestors() for method in cls.methods.values())
    return any(not _CUTS.isdisjoint(method.outline.names) for method in methods)


def _detach_argument(fold: Fold) -> Fix | None:
    """`rnn(x, h.detach())`: safe where the graph is spent, since the second backward raises today."""
    made = fold.value.made
    if made is None or not isinstance(made.node, cst.Call) or not fold.value.exact or not fold.value.certain:
        return None
    for argument in made.node.args:
        if text_of(argument.value) == fold.target:
            return detach_fix(Site(made.piece, argument.value))
    return None


def _backward_in_loop(facts: FileFacts, fold: Fold) -> Backward | None:
    for backward in facts.backwards:
        repeated = fold.loop in backward.scope.loops
        if fold.loop.node is None:  # carried from call to call: the calls stand in a loop that differentiates
            repeated = any(mark.node is not None for mark in backward.scope.loops)
        if repeated and backward.origins & fold.value.origins:
            return backward
    return None


def _reset_elsewhere(facts: FileFacts, fold: Fold) -> bool:
    """Does another method assign the attribute (a reset between sequences)?"""
    if isinstance(fold.key, str):
        return False
    return bool(facts.writers.get(fold.key, set()) - {fold.scope.function})
