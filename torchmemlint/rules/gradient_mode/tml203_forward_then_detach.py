"""TML203 forward-then-detach."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Fix, Severity, Span
from torchmemlint.flow import bindings, lightning
from torchmemlint.flow.facts import Detach, FileFacts, HeldCall, ModuleCall, Scope, Use, WeakCall
from torchmemlint.flow.made_elsewhere import has_no_parameters
from torchmemlint.flow.small_graphs import is_small
from torchmemlint.flow.values import Mode, Origin
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, is_test, report
from torchmemlint.rules.gradient_mode import untrained
from torchmemlint.rules.gradient_mode.evaluation import (
    asks_for_graph,
    evaluates,
    freezes_itself,
    in_no_loop,
    is_evaluation,
    needs_gradients,
    only_constructor_calls,
    only_evaluation_calls,
    runs_once,
)
from torchmemlint.rules.gradient_mode.guarding import ends_its_row, wrap
from torchmemlint.rules.graphs.lifetime import in_forward, in_module, is_part
from torchmemlint.syntax.outline import dotted
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import contains


class ForwardThenDetach(Rule):
    """A forward pass in gradient mode whose gradients go nowhere: every output is detached, or no optimizer wants them.

    ## What it does
    Reports `target_net(x).detach()`, `teacher(x).data`, `critic(s).detach().max(1)` and the like: a module runs with
    gradients on, and everything that comes out of it is detached before it is used. Passes that feed each other
    (`critic(s, actor(s)).detach()`) are one finding, at the last. Also a model that a subclass of
    transformers' `Trainer` is given beside the one to train (a reference policy, a teacher, a reward model) and that
    its loss runs with gradients on, itself, through a part of it (`get_decoder()`) or in a function of the project: the
    trainer makes an optimizer for `model` only. Also a network of the program itself whose results are differentiated
    while its optimizers step other networks only: a target network, a teacher, a backbone where only a new head is
    trained.

    ## Why it costs memory
    The whole graph of the forward pass, with every activation that its layers save, is built and kept until the
    detach, only to be dropped. It stands on top of the training step's own activations at its peak.

    ## Example
    ```python
    with torch.enable_grad():
        target = target_net(next_state).detach().max(1).values
    ```

    ## Use instead
    ```python
    with torch.no_grad():
        target = target_net(next_state).max(1).values
    ```

    ## Fix safety
    Safe: the statement, whose result has no graph either way, is put under `torch.no_grad()`, together with those of
    other forward passes that feed nothing else. No fix is offered where the statement also computes something that
    keeps its graph; a hint says why where another statement shares its line, where it also assigns a name
    (`target(h := encoder(s))`), and where it waits (`await`, `yield`). Unsafe where what it calls keeps something that
    later code may differentiate (an encoder its last output, a method its result), and for a trainer's reference model,
    since an optimizer that callers hand to the trainer could hold its parameters.

    ## When it stays silent
    Any output is differentiated, returned, or handed to code out of view, or the function that returns it is called in
    other files too; the module is frozen (or has no parameters) and its inputs need no gradient (then there is no
    graph); the function turns gradients on, or looks at the graph (`out.grad_fn`); gradients are off, here, in every
    caller in the project, or around a module's method that says by its name that it evaluates; the function that is
    called turns them off where it is asked to (`set_grad_enabled(training)`); Lightning before version 2 runs the
    step for each optimizer with the parameters of the others switched off (`optimizer_idx`). For a trainer's
    reference model: it is frozen, put into training mode, or asked for its parameters, by the trainer or by a
    function that its constructor hands it to; its inputs may hang on what the trained model computes; it may be the
    trained model itself; the trainer makes its own optimizer. An advice for a single pass of a script or
    constructor, where nothing but the detach shows that what is called is a network (and none is trained beside it),
    where the result becomes an array without `.cpu()`, so that it is no accelerator's memory that the graph takes,
    and where the graph is small for certain: one linear layer, one row of numbers (an environment's state) through
    linear layers, or a script that defines the network that it runs and never mentions a device.

    ## References
    - [torch.no_grad](https://pytorch.org/docs/stable/generated/torch.no_grad.html)
    - [transformers: Trainer.create_optimizer](https://huggingface.co/docs/transformers/main_classes/trainer)
    """

    code = "TML203"
    name = "forward-then-detach"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    why = "a graph with all its activations is built only to be dropped"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield forward passes whose results are all detached."""
        if is_test(facts):
            return
        functions: set[object] = set()  # where a forward pass is reported: their callers are not reported again
        for chain in _chains(list(_wasted(facts, functions))):
            yield self._chain(facts, chain)
        for held in untrained.found(facts):
            if held.scope.function not in functions:
                yield self._untrained(facts, held)

    def _chain(self, facts: FileFacts, chain: _Chain) -> Finding:
        """A forward pass whose results are detached, with those that feed nothing else."""
        call, found = chain.last
        evidence = call.evidence if isinstance(call, ModuleCall) else [(call.site, "is called with gradients on")]
        links: list[Link] = [*evidence, *((d.site, f"is detached here (`{d.how}`)") for d in found[:3])]
        links += [(one.site, f"`{one.callee}(...)`, which feeds it, builds a graph as well") for one, _ in chain.before]
        passes = [chain.last, *chain.before]
        return report(
            self,
            facts,
            call.site,
            f"every output of `{call.callee}(...)` is detached: its graph is built for nothing",
            severity=Severity.ADVICE if all(_is_minor(facts, *one) for one in passes) else None,
            evidence=links,
            fix=_fix(facts, passes),
        )

    def _untrained(self, facts: FileFacts, call: HeldCall) -> Finding:
        """A reference model in a trainer's loss."""
        alone = untrained.assignment(call)
        runs = f"`{call.callee}(...)` builds a graph"
        if call.handed or not call.callee.startswith(call.held):
            runs = f"`{call.callee}(...)` runs `{call.held}` and builds a graph"
        return report(
            self,
            facts,
            call.site,
            f"{runs} for gradients that nobody uses: the trainer trains `model` only",
            evidence=[(call.stored, f"`{call.held}` is kept beside the model that is trained")],
            fix=wrap(facts, call.scope.function, alone.span, Applicability.UNSAFE) if alone is not None else None,
        )


_Pass: TypeAlias = "tuple[ModuleCall | WeakCall, list[Detach]]"  # a forward pass, and where its results are detached


@dataclass(frozen=True, slots=True)
class _Chain:
    """A wasted forward pass, and those before it whose results go into it."""

    last: _Pass
    before: list[_Pass]


def _wasted(facts: FileFacts, functions: set[object]) -> Iterator[_Pass]:
    """Forward passes all of whose results are detached, in gradient mode; their functions are put into `functions`."""
    detaches = _by_origin(facts)
    told = {mode.scope.function for mode in facts.no_op_modes if mode.form == "volatile"}  # by TML202
    calls: list[ModuleCall | WeakCall] = [*facts.module_calls, *facts.weak_calls]
    for call in sorted(calls, key=_calls_project):
        if isinstance(call, ModuleCall) and call.module is None and call.function in functions:
            continue
        if call.scope.function in told or asks_for_graph(call.scope) or _is_demonstration(facts, call):
            continue
        found = detaches.get(call.origin)
        if not found or call.scope.mode is not Mode.ON or not _only_detached(facts, call):
            continue
        if isinstance(call, ModuleCall) and (freezes_itself(call) or needs_gradients(facts, call)):
            continue
        if lightning.takes_turns(call.scope.function) or _is_toggled(call.scope) or _takes_the_mode(call):
            continue
        if call.origin in facts.given_back:
            continue  # a public method of a module: who else calls it may want the gradient
        if in_module(call.scope) and (
            is_evaluation(call.scope)
            or evaluates(facts.tests.get(call.site, ()))
            or only_evaluation_calls(facts, call.scope.function)
        ):
            continue  # whoever evaluates the model turns gradients off around it
        if facts.enters_without_gradients(call.scope.function) or facts.goes_to_other_files(call.origin):
            continue
        if isinstance(call, ModuleCall) and has_no_parameters(facts, call):
            continue
        functions.add(call.scope.function)
        yield call, found


def _chains(passes: list[_Pass]) -> Iterator[_Chain]:
    """Forward passes, each with those of the same function that feed it: `critic(x, actor(x)).detach()`."""
    fed_into = {id(one): _fed_into(one[0], passes) for one in passes}
    before: dict[int, list[_Pass]] = {}
    for one in passes:
        last = one
        for _ in passes:  # a pass may feed itself in the next iteration
            following = fed_into[id(last)]
            if following is None or following is one:
                break
            last = following
        if last is not one:
            before.setdefault(id(last), []).append(one)
    fed = {id(one) for some in before.values() for one in some}
    for one in passes:
        if id(one) not in fed:
            yield _Chain(one, before.get(id(one), []))


def _fed_into(call: ModuleCall | WeakCall, passes: list[_Pass]) -> _Pass | None:
    for one in passes:
        other = one[0]
        if other is not call and call.origin in other.input_origins and other.scope.function is call.scope.function:
            return one
    return None


def _is_minor(facts: FileFacts, call: ModuleCall | WeakCall, found: list[Detach]) -> bool:
    """Once, in the host's memory, or little; or a call that nothing but the detach shows to be a forward pass."""
    if isinstance(call, WeakCall) and (
        _is_any_callable(call) or not (_is_teacher(facts, call) or _is_beside_another(facts, call))
    ):
        return True
    if _at_once(call.scope) or runs_once(call.scope) or only_constructor_calls(facts, call.scope):
        return True
    return all(_is_on_the_host(facts, detach) for detach in found) or _is_little(facts, call)


def _is_any_callable(call: WeakCall) -> bool:
    """Is it a parameter that stands for any function: `residual: Callable[[Tensor], Tensor]`?"""
    syntax = call.scope.function.syntax if call.scope.function is not None else None
    given = bindings.parameters(syntax) if syntax is not None else []
    annotations = [one.annotation for one in given if one.arg == call.callee and one.annotation is not None]
    named = (dotted(node) for annotation in annotations for node in ast.walk(annotation) if isinstance(node, ast.expr))
    return any(name.rpartition(".")[2] == "Callable" for name in named)


def _is_little(facts: FileFacts, call: ModuleCall | WeakCall) -> bool:
    return isinstance(call, ModuleCall) and is_small(facts, call)


def _is_on_the_host(facts: FileFacts, detach: Detach) -> bool:
    """`y.data.numpy()`, and nothing of a `cpu` before it: numpy takes no tensor of an accelerator."""
    node, end = detach.site.node, detach.site.span.end
    if not facts.source.rows[end.row - 1][end.column - 1 :].startswith((".numpy(", "().numpy(")):
        return False
    owner = node.value if isinstance(node, cst.Attribute) else node
    return "cpu" not in (detach.site.piece.text if isinstance(owner, cst.Name) else text_of(owner))


def _is_toggled(scope: Scope) -> bool:
    """Does the step have Lightning freeze what the other optimizers hold: `self.toggle_optimizer(opt_d)`?"""
    return scope.function is not None and "toggle_optimizer" in scope.function.outline.calls


def _takes_the_mode(call: ModuleCall | WeakCall) -> bool:
    """Does the function that is called turn gradients off where its caller asks for that: `set_grad_enabled(train)`?"""
    function = call.function if isinstance(call, ModuleCall) else None
    return function is not None and "set_grad_enabled" in function.outline.names


def _is_demonstration(facts: FileFacts, call: ModuleCall | WeakCall) -> bool:
    """A library's file that calls its own function at its end, once, to show what comes out."""
    if not isinstance(call, ModuleCall) or call.function is None or not _at_once(call.scope):
        return False
    return facts.callers is not None and facts.callers.elsewhere(call.function)


def _at_once(scope: Scope) -> bool:
    """By a script itself, in no function and no loop: what it shows when all is done, or before."""
    return scope.function is None and in_no_loop(scope)


def _calls_project(call: ModuleCall | WeakCall) -> bool:
    return isinstance(call, ModuleCall) and call.module is None


def _only_detached(facts: FileFacts, call: ModuleCall | WeakCall) -> bool:
    """Does everything that comes out of this forward pass end in a detach?"""
    use = facts.uses.get(call.origin, Use.NOTHING)
    if Use.DETACHED not in use or use & ~(Use.DETACHED | Use.READ):
        return False
    effects = facts.effects.get(call.scope.function, set())
    if Use.READ in use and "backward" not in effects and not is_part(call):
        return False  # evaluation, TML201's business
    if isinstance(call, WeakCall):
        if facts.spent.get(call.origin) or not call.runs or _goes_through_another(facts, call):
            return False
        if _looks_at_a_loss(facts, call):
            return False
        # in training code, a detach shows that there is a graph
        return _is_plain(call) and ("backward" in effects or _is_teacher(facts, call))
    if facts.spent.get(call.origin):
        return False  # differentiated already by the function that returns it
    if call.frozen or call.differentiable_input:
        return False
    if call.module is None and call.evaluating is None and use is not Use.DETACHED:
        return False
    return call.evaluating is None or "backward" in effects  # else it is evaluation, TML201's business


def _looks_at_a_loss(facts: FileFacts, call: WeakCall) -> bool:
    """`self.gather(loss).detach()`: is it given what another call gave alone, and a backward runs through that?"""
    node = call.site.node
    if not (isinstance(node, cst.Call) and len(node.args) == 1):
        return False
    made = facts.makers | facts.weak_makers
    return any(Use.DIFFERENTIATED in facts.uses.get(origin, Use.NOTHING) for origin in call.input_origins & made)


def _is_plain(call: WeakCall) -> bool:
    """A name or an attribute of the object, not a method of something."""
    return call.callee.removeprefix("self.").isidentifier()


def _goes_through_another(facts: FileFacts, call: WeakCall) -> bool:
    """Is the result handed to another call, of whose output the detach speaks?"""
    calls: list[ModuleCall | WeakCall] = [*facts.module_calls, *facts.weak_calls]
    return any(other.origin != call.origin and call.origin in other.input_origins for other in calls)


def _is_teacher(facts: FileFacts, call: WeakCall) -> bool:
    """In a module's forward, a part that its constructor was given, beside another whose results are returned."""
    function, attribute = call.scope.function, call.callee.removeprefix("self.")
    if function is None or function.cls is None or not in_forward(call.scope):
        return False
    if attribute == call.callee or untrained.given_to_constructor(function.cls, attribute) is None:
        return False
    return any(
        other.callee.startswith("self.")
        and other.scope.function is function
        and other.origin != call.origin
        and Use.RETURNED in facts.uses.get(other.origin, Use.NOTHING)
        for other in facts.weak_calls
    )


def _is_beside_another(facts: FileFacts, call: WeakCall) -> bool:
    """Does the function differentiate what another call makes of its data: the network that is trained, and no loss?"""
    calls: list[ModuleCall | WeakCall] = [*facts.module_calls, *facts.weak_calls]
    made = facts.makers | facts.weak_makers
    return any(
        other.scope.function is call.scope.function
        and other.callee != call.callee
        and (isinstance(other, ModuleCall) or _is_plain(other))
        and made.isdisjoint(other.input_origins)
        and Use.DIFFERENTIATED in facts.uses.get(other.origin, Use.NOTHING)
        for other in calls
    )


def _by_origin(facts: FileFacts) -> dict[Origin, list[Detach]]:
    found: dict[Origin, list[Detach]] = {}
    for detach in facts.detaches:
        for origin in detach.value.origins:
            found.setdefault(origin, []).append(detach)
    return found


def _fix(facts: FileFacts, passes: list[_Pass]) -> Fix | None:
    """`with torch.no_grad():` around the statements, where all that they compute is detached."""
    spans = [_statement(*one) for one in passes]
    if spans[0] is None:
        return None
    whole = sorted({span for span in spans if span is not None}) if None not in spans else [spans[0]]
    function = passes[0][0].scope.function
    fixes = [wrap(facts, function, span, Applicability.SAFE) for span in _adjoining(facts, whole)]
    found = [fix for fix in fixes if fix is not None]
    if len(found) < len(fixes):
        return None
    worst = next((fix for level in _DOUBTS for fix in found if fix.applicability is level), found[0])
    if worst.applicability is Applicability.HINT:
        return worst
    return replace(worst, edits=tuple(dict.fromkeys(edit for fix in found for edit in fix.edits)))


_DOUBTS = (Applicability.HINT, Applicability.UNSAFE)


def _adjoining(facts: FileFacts, spans: list[Span]) -> list[Span]:
    """Statements in the order of the file, those that follow each other in one suite as one."""
    joined: list[Span] = []
    for span in spans:
        above = joined[-1] if joined else None
        if above is not None and above.start.column == span.start.column and ends_its_row(facts, above):
            between = facts.source.rows[above.end.row : span.start.row - 1]
            if not any(line.strip() and not line.lstrip().startswith("#") for line in between):
                joined[-1] = Span(above.start, span.end)
                continue
        joined.append(span)
    return joined


def _statement(call: ModuleCall | WeakCall, detaches: list[Detach]) -> Span | None:
    """The statement of a forward pass, where the whole of it is detached."""
    statement = call.statement
    if not isinstance(statement.node, cst.Assign | cst.AnnAssign) or statement.node.value is None:
        return None
    if statement.node.value is call.site.node:
        return statement.span  # all that is made of its targets is detached
    inside = [d for d in detaches if contains(statement.node.value, d.site.node)]
    if not inside:
        return statement.span if _binds_one_name(statement.node) else None  # of which it is a part
    return statement.span if _whole(statement.node.value, inside[0].site.node) else None


def _binds_one_name(statement: cst.Assign | cst.AnnAssign) -> bool:
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name())]) | cst.AnnAssign(target=cst.Name()):
            return True
    return False


def _whole(value: cst.BaseExpression, detach: cst.CSTNode) -> bool:
    """Is the assigned value the detached one, or methods and items of it?"""
    node: cst.CSTNode = value
    while node is not detach:
        match node:
            case cst.Call(func=func):
                node = func
            case cst.Attribute(value=owner) | cst.Subscript(value=owner):
                node = owner
            case _:
                return False
    return True
