"""TML105 needless-retain-graph."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

import libcst as cst

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Severity, Span
from torchmemlint.flow.facts import Backward, FileFacts, ModuleCall, Use, WeakCall
from torchmemlint.flow.interpreter import KEPT
from torchmemlint.flow.values import Container, Origin, Tensor
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import history, is_test, report
from torchmemlint.syntax.outline import Outline
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of


class NeedlessRetainGraph(Rule):
    """A graph is retained that nothing differentiates again.

    ## What it does
    Reports `retain_graph=True` (or `create_graph=True`) where no second backward or `autograd.grad` over a shared part
    of the graph can follow.

    ## Why it costs memory
    Backward frees saved tensors as it goes, unless the graph is retained: then all of them stay until the last
    reference to the result is gone. Measured for a small network: peak 26.8 instead of 22.1 MB. `create_graph` in
    addition builds a graph of the gradients.

    ## Example
    ```python
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward(retain_graph=True)
        optimizer.step()
    ```

    ## Use instead
    ```python
        loss.backward()
    ```

    ## Fix safety
    Unsafe: where code out of view does differentiate again, it raises without the retained graph.

    ## When it stays silent
    A second differentiation is possible: another backward over a shared part, gradient penalties, double backward,
    hypergradients, a graph built outside the loop, a loss that is returned, stored or handed to other code;
    after `loss.backward(create_graph=True)`, a `step()` of anything but torch's optimizers, another backward of the
    same function, or something computed from the gradients (`p.grad`).

    ## References
    - [torch.Tensor.backward](https://pytorch.org/docs/stable/generated/torch.Tensor.backward.html)
    - [pytorch#40005](https://github.com/pytorch/pytorch/issues/40005)
    """

    code = "TML105"
    name = "needless-retain-graph"
    severity = Severity.WARNING
    fix = Applicability.UNSAFE
    why = "a retained graph keeps every tensor that backward would have freed"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield backwards that keep a graph which is not used again."""
        if is_test(facts):
            return
        for backward in facts.backwards:
            given = [argument for argument in (backward.create, backward.retain) if argument is not None]
            if not given or not is_last(facts, backward):
                continue
            if backward.create is not None and (_feeds_a_step(facts, backward) or _feeds_hooks(backward)):
                continue
            if backward.create is not None and _gradients_are_used(facts, backward):
                continue
            option = "retain_graph" if backward.create is None else "create_graph"  # which retains, too
            yield report(
                self,
                facts,
                backward.site,
                f"`{option}=True` keeps a graph that is not differentiated again",
                evidence=history(backward.value.history) if isinstance(backward.value, Tensor) else (),
                fix=Fix(
                    f"Remove `{option}=True`",
                    Applicability.UNSAFE,
                    without_arguments(backward.site, given),
                ),
            )


def _feeds_a_step(facts: FileFacts, backward: Backward) -> bool:
    """May the step after `loss.backward(create_graph=True)` differentiate the gradients (second-order optimizers)?

    Torch's own do not.
    """
    if _method(backward) != "backward":
        return False  # what `autograd.grad` returns is in view
    steps = {path for path, names in facts.methods.items() if "step" in names}
    known = {
        text_of(event.site.node.func.value)
        for event in facts.training.values()
        if event.kind == "step" and event.modules is not None
        if isinstance(event.site.node, cst.Call) and isinstance(event.site.node.func, cst.Attribute)
    }
    return not known or not steps <= known


def _feeds_hooks(backward: Backward) -> bool:
    """Does nobody take what `torch.autograd.grad(loss, x, create_graph=True)` returns? Then hooks have it."""
    statement = backward.statement.node
    thrown_away = isinstance(statement, cst.Expr) and statement.value is backward.site.node
    return thrown_away and _method(backward) == "grad"


_AS_NUMBERS = frozenset("data detach item tolist numpy is_sparse shape dtype device requires_grad".split())


def _gradients_are_used(facts: FileFacts, backward: Backward) -> bool:
    """After `loss.backward(create_graph=True)`, is something computed from `p.grad`, or differentiated once more?"""
    if _method(backward) == "grad":
        return False  # what `autograd.grad` returns is in view
    function = backward.scope.function
    if any(other.scope.function is function and other.order > backward.order for other in facts.backwards):
        return True
    program = facts.program
    if function is None:
        outlines = [program.outline_of(piece) for piece in program.source.pieces if piece.kind == "code"]
    else:
        outlines = [function.outline]
    called = {name for one in outlines for name in one.calls}
    methods = function.cls.methods if function is not None and function.cls is not None else {}
    beside = (program.find_function(name) or methods.get(name) for name in sorted(called))
    outlines += [one.outline for one in beside if one is not None]
    return any(_reads_gradients(one) for one in outlines)


def _reads_gradients(outline: Outline) -> bool:
    """Is `p.grad` read, other than as numbers or to change it in place?"""
    if "grad" not in outline.names:
        return False
    above: dict[int, ast.AST] = {}
    for node in outline.nodes:
        above.update((id(part), node) for part in ast.iter_child_nodes(node))
    for node in outline.nodes:
        if not (isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load)):
            continue
        match above.get(id(node)):
            case ast.Call(func=func) if func is node:
                continue  # `torch.autograd.grad(...)`
            case ast.Compare() | ast.Expr() | ast.BoolOp():
                continue
            case ast.Attribute(attr=name) if name in _AS_NUMBERS or (name.endswith("_") and not name.startswith("_")):
                continue
        if not any(_is_number(one) for one in _chain(node, above)):
            return True
    return False


def _chain(node: ast.AST, above: dict[int, ast.AST]) -> Iterator[ast.AST]:
    """The expressions that a node is a part of."""
    parent = above.get(id(node))
    while isinstance(parent, ast.expr | ast.comprehension | ast.keyword):
        yield parent
        parent = above.get(id(parent))


def _is_number(node: ast.AST) -> bool:
    """`(...).item()`, `float(...)`, `print(...)`."""
    match node:
        case ast.Attribute(attr=name):
            return name in _AS_NUMBERS
        case ast.Call(func=ast.Name(id=name)):
            return name in ("float", "print")
    return False


def _method(backward: Backward) -> str:
    """The last name of what differentiates: "backward", "grad", ..."""
    match backward.site.node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))):
            return name
    return ""


def is_last(facts: FileFacts, backward: Backward) -> bool:
    """Can nothing differentiate a part of this graph again?"""
    value = backward.value
    if isinstance(value, Container) or not backward.origins:
        return False
    if backward.create is not None and backward.scope.function is not None and backward.scope.function.parent:
        return False  # the gradient that a nested function returns is differentiated by whoever calls it
    loops = [mark for mark in backward.scope.loops if mark.node is not None]
    given = {origin for origin in backward.origins if isinstance(origin.site.node, cst.Param)}
    made = frozenset(
        o
        for o in backward.origins - given - facts.leaves
        if o in facts.makers or (o in facts.weak_makers and _same_function(backward, o))
    )
    if not made or (given and not loops and _others_anywhere(facts, backward)):
        return False  # what callers hand in may be differentiated by the other backward
    function = backward.scope.function
    if loops and function is not None and not facts.handed_in.get(function, set()).isdisjoint(made):
        return False  # handed in once, differentiated in every iteration
    if any(origin.index == KEPT for origin in backward.origins - facts.leaves):
        return False
    if isinstance(value, Tensor) and (value.carried or not value.carries_graph):
        return False
    if _others(facts, backward) or _feeds_itself(facts, made) or _handed_on(facts, backward, made):
        return False
    if facts.use(made) & (Use.RETURNED | Use.STORED):
        return False
    own = frozenset(o for o in made if o.site is backward.value_site)
    if facts.use(own) & Use.PASSED:
        return False
    unknown = {o for o in backward.origins - facts.leaves - made if isinstance(o.site.node, cst.Call)}
    return all(_inside_loop(backward, origin) for origin in made | unknown)


def _others(facts: FileFacts, backward: Backward) -> bool:
    """Another, later differentiation of a part of the same graph, or of what may be one."""
    shared = backward.origins & (facts.makers | facts.weak_makers)
    shared |= {origin for origin in backward.origins if _is_made_in_the_loop(backward, origin)}
    return any(
        other.site is not backward.site
        and other.origins & shared
        and (other.scope.function is not backward.scope.function or other.order > backward.order)
        for other in facts.backwards
        if other.scope.function is backward.scope.function or other.origins & shared
    )


def _is_made_in_the_loop(backward: Backward, origin: Origin) -> bool:
    """Is it what a call gives in the same iteration: `self.model.base(x)`, of which nothing else is known?"""
    loops = [mark.site for mark in backward.scope.loops if mark.node is not None and mark.site is not None]
    if not isinstance(origin.site.node, cst.Call) or not _same_function(backward, origin):
        return False
    return not loops or loops[-1].span.contains(origin.site.span)


def _handed_on(facts: FileFacts, backward: Backward, made: frozenset[Origin]) -> bool:
    """Does code out of view get a part of the graph afterwards? `self.critic.step(loss)` may differentiate it."""
    return any(
        call.scope.function is backward.scope.function
        and call.site.piece is backward.site.piece
        and call.site.span.start > backward.site.span.end
        and call.input_origins & made
        for call in facts.weak_calls
    )


def _feeds_itself(facts: FileFacts, made: frozenset[Origin]) -> bool:
    """Does a state come back into the call that made it, with its graph?"""
    calls: list[ModuleCall | WeakCall] = [*facts.module_calls, *facts.weak_calls]
    return any(call.origin in made and any(o.site is call.origin.site for o in call.input_origins) for call in calls)


def _others_anywhere(facts: FileFacts, backward: Backward) -> bool:
    return any(other.scope.function is not backward.scope.function for other in facts.backwards)


def _same_function(backward: Backward, origin: Origin) -> bool:
    function = backward.scope.function
    if origin.site.piece.top is not backward.site.piece.top:
        return False
    return function is None or function.piece.span(function.node).contains(origin.site.span)


def _inside_loop(backward: Backward, origin: Origin) -> bool:
    """Is the graph built anew in each iteration of the innermost loop around the backward?"""
    loops = [mark.site for mark in backward.scope.loops if mark.node is not None and mark.site is not None]
    if not loops or not _same_function(backward, origin):
        return True  # made in a function that is called from here
    return loops[-1].span.contains(origin.site.span)


def without_arguments(site: Site, arguments: Sequence[cst.Arg]) -> tuple[Edit, ...]:
    """Edits that take arguments out of a call, with their commas."""
    call = site.node
    if not isinstance(call, cst.Call):
        return ()
    gone = [any(argument is one for one in arguments) for argument in call.args]
    edits: list[Edit] = []
    for first, last in _runs(gone):
        begin = site.piece.span(call.args[first]).start if first == 0 else _value_end(site, call.args[first - 1])
        end = _value_end(site, call.args[last])
        if first == 0 and last + 1 < len(gone):
            end = site.piece.span(call.args[last + 1]).start
        edits.append(Edit(Span(begin, end), ""))
    return tuple(edits)


def _runs(marks: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """The first and last place of each run of marks."""
    for value, places in itertools.groupby(range(len(marks)), key=marks.__getitem__):
        run = list(places)
        if value:
            yield run[0], run[-1]


def _value_end(site: Site, argument: cst.Arg) -> Position:
    return site.piece.span(argument).end
