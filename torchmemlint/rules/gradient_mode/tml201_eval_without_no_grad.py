"""TML201 eval-without-no-grad."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow import inner_gradients
from torchmemlint.flow.facts import FileFacts, ModuleCall, Use, WeakCall
from torchmemlint.flow.gradient_modes import off_in_evaluation, runs_inference
from torchmemlint.flow.made_elsewhere import has_no_parameters
from torchmemlint.flow.program import Function
from torchmemlint.flow.small_graphs import is_small
from torchmemlint.flow.values import Mode, Origin
from torchmemlint.knowledge import modules as known_modules
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, is_test, report
from torchmemlint.rules.gradient_mode.evaluation import (
    asks_for_graph,
    compares_once,
    freezes_itself,
    in_training,
    is_smoke_test,
    needs_gradients,
    runs_once,
)
from torchmemlint.rules.gradient_mode.guarding import decorate, innermost_loop, wrap
from torchmemlint.rules.graphs.lifetime import in_forward, is_part
from torchmemlint.syntax.walking import contains, inside, names_in

_GRADIENT_EFFECTS = frozenset({"backward", "step", "input-gradient", "gradient hook"})


class EvalWithoutNoGrad(Rule):
    """A forward pass whose results are never differentiated runs with gradients on.

    ## What it does
    Reports evaluation, validation, prediction, feature extraction and sampling that run a module while autograd
    records: the module is in evaluation mode (`.eval()`), or every result of the loop is only read as numbers, and
    nothing differentiates what comes out. A loop between `model.eval()` and `model.train()` of one function is such a
    pass wherever its results go.

    ## Why it costs memory
    Every layer keeps what its backward would need until the result is dropped: measured for a small network, a peak of
    18.4 instead of 10.5 MB. Where results are kept over iterations, so are their graphs, and memory grows with the
    data set (severity `error`).

    ## Example
    ```python
    def validate(model, loader):
        model.eval()
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    ```

    ## Use instead
    ```python
    @torch.no_grad()
    def validate(model, loader):
        ...
    ```

    ## Fix safety
    Safe where the results stay inside the function: they have the same values, without a graph. Unsafe where they
    are returned or handed on, since a caller could differentiate them, and where the function, or what it calls, stores
    something that may have a graph: in an attribute that other code reads, a global, a container that it was handed or
    closes over, a cache, or by a forward hook. Where the function, or what it calls, takes
    gradients of its own, or hands the model to another package's code (which may: an attack, an explainer), only the
    statement is put under `torch.no_grad()`. Where the file imports only parts of torch (`from torch import nn`), torch
    itself is imported beside them.

    ## When it stays silent
    Gradients are off by any route (context, decorator, `set_grad_enabled`, `ExitStack`, the project's own context
    managers and decorators, hooks that Lightning runs without gradients, library calls that guard themselves); every
    caller in the project turns them off (sought in the files that mention the function, where these are at most 12);
    all parameters are frozen, or the module has none, as far as all that the project puts into an attribute of its name
    tells; inputs require gradients (saliency, attacks); what is called differentiates something
    itself, or may, as a model of the project does (forces from an energy); the function turns gradients on, or looks at
    the graph (`out.grad_fn`); the pass stands in a function that another
    makes and hands out, or in a `forward` whose objects nothing in view runs with gradients on; a method of the
    model's own goes on with what the pass left in it (`actor(x)`, then `actor.log_prob(a)`); in tests. An advice in a
    constructor, for a single pass whose output is dropped, for one by which a conversion is checked, and where the
    graph is small for certain and not kept: one linear layer, one row of numbers (an environment's state) through
    linear layers, or a script that defines the network that it runs and never mentions a device.

    ## References
    - [Autograd mechanics: locally disabling gradient computation](https://pytorch.org/docs/stable/notes/autograd.html)
    - [transformers#7232](https://github.com/huggingface/transformers/issues/7232)
    """

    code = "TML201"
    name = "eval-without-no-grad"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "every layer keeps its activations for a backward pass that never comes"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield forward passes that record a graph for nothing."""
        if is_test(facts):
            return
        functions: set[object] = set()
        origins: set[Origin] = set()
        wasted = [(call, found) for call in facts.module_calls if (found := self._call(facts, call)) is not None]
        for call, found in sorted(wasted, key=lambda pair: (pair[0].module is None, pair[1].span)):
            if call.module is None and call.function in functions:
                continue  # reported inside the function
            if call.input_origins & origins - {call.origin}:
                continue  # fed by a forward pass that is reported
            if facts.enters_without_gradients(call.scope.function) or needs_gradients(facts, call):
                continue
            if facts.callers is not None and call.scope.function and facts.callers.decide(call.scope.function):
                continue
            if has_no_parameters(facts, call):
                continue
            if not _within(call) and facts.goes_to_other_files(call.origin):
                continue
            functions.add(call.scope.function)
            origins.add(call.origin)
            yield found

    def _call(self, facts: FileFacts, call: ModuleCall) -> Finding | None:
        if call.scope.mode is not Mode.ON or call.frozen or call.differentiable_input or freezes_itself(call):
            return None
        if asks_for_graph(call.scope) or in_training(facts.tests.get(call.site, ())):
            return None
        if call.module is None and call.function and off_in_evaluation(facts.program.contracts, call.function):
            return None
        if _set_by_another(call):
            call = replace(call, evaluating=None)
        if call.evaluating is None and is_smoke_test(call):
            return None
        function = call.scope.function
        effects = facts.effects.get(function, set())
        use = facts.uses.get(call.origin, Use.NOTHING)
        if use & (Use.DIFFERENTIATED | Use.ARRAY) or effects & {"input-gradient", "gradient hook"}:
            return None
        if "restores training mode" not in effects and _only_for_its_hooks(facts, call):
            return None
        if "backward" in effects and Use.DETACHED in use:
            return None  # training code that drops this graph: TML203
        here = call.evaluating is not None and _within(call)
        inference = call.evaluating is not None and not isinstance(call.evaluating.node, cst.Call)  # by contract
        if inference or (function is not None and runs_inference(function)):
            return self._finding(facts, call, use, effects) if not effects & _GRADIENT_EFFECTS else None
        if here and _is_pass_over_data(facts, call, effects):
            return self._finding(facts, call, use, effects)
        if here and (use & Use.STORED or (function is None and innermost_loop(call.scope) is None)):
            return None
        if here and use & Use.RETURNED and _may_be_differentiated(facts, call, use, effects):
            return None
        if here:
            if call.module is None and use & Use.RETURNED:
                return None
        elif call.evaluating is not None:
            if use & (Use.RETURNED | Use.STORED) or effects & _GRADIENT_EFFECTS:
                return None
            if not use & (Use.READ | Use.DETACHED | Use.PASSED):
                return None
            if use & Use.PASSED and (is_part(call) or call.origin in facts.given_by_lambdas):
                return None
        elif not self._only_read(facts, call, use, effects) or _is_asked_later(call):
            return None
        return self._finding(facts, call, use, effects)

    def _only_read(self, facts: FileFacts, call: ModuleCall, use: Use, effects: set[str]) -> bool:
        """In a loop or function, without training, every result is read as a number."""
        if effects & (_GRADIENT_EFFECTS | {"freezes"}):
            return False
        function = call.scope.function
        if is_part(call):
            return False
        if innermost_loop(call.scope) is None and call.scope.function is None:
            return False  # a demonstration at the end of a file
        if use & (Use.RETURNED | Use.STORED | Use.PASSED) or call.origin in facts.given_back:
            return False
        if function is not None and (_called_by_base(function) or _is_bound_later(function)):
            return False
        return bool(use & Use.READ)

    def _finding(self, facts: FileFacts, call: ModuleCall, use: Use, effects: set[str]) -> Finding:
        kept = _kept(facts, call)
        links: list[Link] = list(call.evidence) or [(call.site, "runs a forward pass with gradients on")]
        if call.evaluating is not None and isinstance(call.evaluating.node, cst.Call):
            links.append((call.evaluating, "is put into evaluation mode here"))
        if kept is not None:
            links.append(kept)
        what = "is in evaluation mode" if call.evaluating is not None else "is used for numbers only"
        return report(
            self,
            facts,
            call.site,
            f"`{call.callee}(...)` {what} but records a graph"
            + (", and its results are kept over iterations" if kept is not None else ""),
            severity=_severity(facts, call, kept),
            evidence=links,
            fix=_fix(facts, call, use, effects),
        )


def _is_asked_later(call: ModuleCall) -> bool:
    """Does a method of the model's own go on with what the forward pass left in it: `actor(x)`, `actor.log_prob(a)`?"""
    function = call.scope.function
    if function is None or call.module is None or call.method:
        return False
    called = function.outline.methods.get(call.callee, set())
    return not called <= known_modules.METHODS


def _severity(facts: FileFacts, call: ModuleCall, kept: Link | None) -> Severity:
    if runs_once(call.scope) or compares_once(call.scope) or _is_warm_up(call):
        return Severity.ADVICE
    if kept is not None:
        return Severity.ERROR
    return Severity.ADVICE if is_small(facts, call) else Severity.WARNING


def _is_warm_up(call: ModuleCall) -> bool:
    """A pass outside of any loop whose output nobody takes (`_ = model(x)`): one graph, and soon gone."""
    return _is_dropped(call) and innermost_loop(call.scope) is None


def _is_dropped(call: ModuleCall) -> bool:
    match call.statement.node:
        case cst.Expr(value=value):
            return value is call.site.node
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value="_"))], value=value):
            return value is call.site.node
    return False


def _only_for_its_hooks(facts: FileFacts, call: ModuleCall) -> bool:
    """A pass whose output is dropped, in a function that registers hooks: what they keep may be differentiated."""
    function = call.scope.function
    if not _is_dropped(call) or function is None or "register_forward_hook" not in function.outline.calls:
        return False
    returned = [node for node in inside(function.node) if isinstance(node, cst.Return) and node.value is not None]
    return any(_NUMBERS.isdisjoint(names_in(node)) for node in returned)


_NUMBERS = frozenset({"detach", "numpy", "item", "tolist"})


def _is_pass_over_data(facts: FileFacts, call: ModuleCall, effects: set[str]) -> bool:
    """`model.eval()`, a loop that runs it, `model.train()`: whatever becomes of the results, no backward uses them."""
    if call.module is None or innermost_loop(call.scope) is None or effects & _GRADIENT_EFFECTS:
        return False
    again = facts.training_again.get((call.scope.function, call.module.oid), ())
    return any(site.piece is call.site.piece and site.span.start > call.site.span.end for site in again)


def _may_be_differentiated(facts: FileFacts, call: ModuleCall, use: Use, effects: set[str]) -> bool:
    """Is what the function returns more than the output of a module in evaluation mode?"""
    function = call.scope.function
    if function is not None and function.parent is not None:
        return True  # a function that is handed out: those who get it decide
    if in_forward(call.scope):
        return True  # a frozen part of a larger module: gradients may flow through it to its input
    if effects & {"backward", "restores training mode"} or use & Use.PASSED:
        return True
    return _overrides_unseen(function) or _feeds_training(facts, call)


def _overrides_unseen(function: Function | None) -> bool:
    """Is it a method of a class with a base out of view, which may differentiate what it is given?"""
    if function is None or function.cls is None:
        return False
    return any(base not in ("object", "torch.nn.Module") for base in function.cls.external_bases())


def _feeds_training(facts: FileFacts, call: ModuleCall) -> bool:
    """Does a module that is not in evaluation mode work on the result (a frozen trunk under a head that trains)?"""
    return any(other.evaluating is None and call.origin in other.input_origins for other in facts.module_calls)


def _called_by_base(function: Function) -> bool:
    """Does a base class of another file mention the method? Then that may run it, with gradients off."""
    ancestors = function.cls.ancestors() if function.cls is not None else ()
    return any(cls.program is not function.program and function.name in cls.outline.names for cls in ancestors)


def _is_bound_later(function: Function) -> bool:
    """`def step(self, batch):` within a function: made to be a method of some object, whose class decides."""
    names = [parameter.name.value for parameter in (*function.node.params.posonly_params, *function.node.params.params)]
    return function.parent is not None and names[:1] == ["self"]


def _within(call: ModuleCall) -> bool:
    """Was the module put into evaluation mode by the function that calls it?"""
    site = call.evaluating
    function = call.scope.function
    if site is None or site.piece.top is not call.site.piece.top:
        return site is not None and function is None
    if function is None:
        return True
    return function.piece.span(function.node).contains(site.span)


def _set_by_another(call: ModuleCall) -> bool:
    """Did a function beside this one, within the same outer one, put the module into evaluation mode?

    Both see the outer function's module. In which order they run, and what sets the mode again, that one decides.
    """
    site, function = call.evaluating, call.scope.function
    if site is None or function is None or function.parent is None or _within(call):
        return False
    outer = function.parent
    return any(
        isinstance(node, cst.FunctionDef) and node is not outer.node and outer.piece.span(node).contains(site.span)
        for node in inside(outer.node)
    )


def _kept(facts: FileFacts, call: ModuleCall) -> Link | None:
    for collection in facts.collections:
        if call.origin in collection.value.origins and collection.loop in call.scope.loops:
            return (collection.site, f"the result goes into `{collection.container}` in every iteration")
    for fold in facts.folds:
        if call.origin in fold.value.origins and fold.loop in call.scope.loops:
            return (fold.site, f"the result is added to `{fold.target}` in every iteration")
    return None


def _fix(facts: FileFacts, call: ModuleCall, use: Use, effects: set[str]) -> Fix | None:
    leaves = use & (Use.RETURNED | Use.STORED | Use.PASSED)
    applicability = Applicability.UNSAFE if leaves else Applicability.SAFE
    function = call.scope.function
    program = facts.program
    alone = inner_gradients.may_take(function, program) or inner_gradients.hands_out(function, program, call.callee)
    if alone or _gives_another_graph(facts, call):
        single = [one for one in facts.module_calls if contains(call.statement.node, one.site.node)] == [call]
        return (
            wrap(facts, call.scope.function, call.statement.span, applicability, wasted=call.origin) if single else None
        )
    trains = bool(effects & _GRADIENT_EFFECTS)
    if function is not None and not trains:
        return decorate(facts, function, applicability, wasted=call.origin)
    loop = innermost_loop(call.scope)
    if loop is not None and not any(mark.site is loop for backward in facts.backwards for mark in backward.scope.loops):
        return wrap(facts, call.scope.function, loop.span, applicability, wasted=call.origin)
    return None


def _gives_another_graph(facts: FileFacts, call: ModuleCall) -> bool:
    """Does the function return or keep what a module that trains has made: a loss of it and of this one's output?"""
    function = call.scope.function
    given = Use.RETURNED | Use.STORED
    calls: list[ModuleCall | WeakCall] = [*facts.module_calls, *facts.weak_calls]
    return function is not None and any(
        other.scope.function is function
        and other.origin != call.origin
        and other.scope.mode is not Mode.OFF
        and (isinstance(other, WeakCall) or (other.evaluating is None and not other.frozen))
        and facts.uses.get(other.origin, Use.NOTHING) & given
        for other in calls
    )
