"""TML601 gradients-zeroed-in-place."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import libcst as cst

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts, GradientsZeroed
from torchmemlint.flow.program import Function
from torchmemlint.flow.zeroing import gradients_are_written
from torchmemlint.rules.arguments import node_of, replacing
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import is_test, report
from torchmemlint.syntax.outline import dotted
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import inside

# Who captures a step as a graph of kernels, or shards its gradients, needs them to stay where they are.
_NEEDS_THEM = ("cudagraph", "cuda.graph(", "make_graphed", "reduce-overhead", "sharded", "fully_shard", "fsdp")
_CHECKS = frozenset({"isnan", "isinf", "isfinite"})


class GradientsZeroedInPlace(Rule):
    """Gradients are set to zero where they lie, and stay allocated through the next forward pass.

    ## What it does
    Reports `zero_grad(set_to_none=False)` of optimizers and modules in a function that runs the backward or the step,
    and loops over parameters that call `p.grad.zero_()`.

    ## Why it costs memory
    Gradients need as many bytes as the parameters. Zeroed ones lie idle while the forward pass fills the memory with
    activations; dropped ones are allocated again by the backward pass, as the activations go. On a small perceptron,
    this is a seventh of the peak. Dropping them also saves the zeroing, and an optimizer skips what has no gradient.

    ## Example
    ```python
    for images, targets in loader:
        optimizer.zero_grad(set_to_none=False)
        criterion(model(images), targets).backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    for images, targets in loader:
        optimizer.zero_grad(set_to_none=True)
        criterion(model(images), targets).backward()
        optimizer.step()
    ```

    ## Fix safety
    Unsafe: a parameter that a step does not use has the gradient None then, and not zero, so that the optimizer leaves
    it alone where momentum or weight decay moved it, and code that reads `p.grad` has to allow for it. `True` has been
    the default of `set_to_none` since torch 2.0.

    ## When it stays silent
    The mode is an argument or a setting, or the other one is chosen elsewhere in the function; the gradients of a step
    are thrown away between its backward and the optimizer's step; the file puts something into `.grad` itself, as flat
    buffers and averages over processes do; it captures CUDA graphs or shards its gradients; the loop runs over
    something that is not shown to be parameters, or chooses among them; tests.

    ## References
    - [torch.optim.Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
    - [Performance tuning guide: set gradients to None](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code = "TML601"
    name = "gradients-zeroed-in-place"
    severity = Severity.WARNING
    fix = Applicability.UNSAFE
    why = "the gradients, as large as the parameters, lie idle while the forward pass needs the memory"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield gradients that are zeroed between one step and the next."""
        if is_test(facts) or not facts.gradients_zeroed:
            return
        text = facts.source.text.lower()
        if any(word in text for word in _NEEDS_THEM) or gradients_are_written(facts.program):
            return
        by_site: dict[object, list[GradientsZeroed]] = {}
        for zeroed in facts.gradients_zeroed.values():
            by_site.setdefault(zeroed.site, []).append(zeroed)
        for several in by_site.values():
            zeroed = next((one for one in several if one.statement is not None), several[0])
            if _is_chosen(zeroed) or not any(_is_between_steps(facts, one) for one in several):
                continue
            if any(_discards(facts, one) for one in several):
                continue
            loop = zeroed.parameter != "zero_grad"
            shown = zeroed.shown if loop else "`set_to_none=False` asks for zeros"
            yield report(
                self,
                facts,
                zeroed.site,
                f"`{zeroed.callee}` keeps the gradients allocated through the next forward pass",
                evidence=[(zeroed.site, shown)],
                fix=_fix(zeroed),
            )


def _is_between_steps(facts: FileFacts, zeroed: GradientsZeroed) -> bool:
    """Is it a training step that the gradients are zeroed for?"""
    if zeroed.updates or _is_optimizers_own(zeroed.scope.function):
        return True
    return any(event.root is zeroed.root and event.kind in ("backward", "step") for event in facts.training.values())


def _is_optimizers_own(function: Function | None) -> bool:
    """Does it stand for `Optimizer.zero_grad`, and is not told what to do?"""
    return function is not None and function.cls is not None and function.name == "zero_grad"


def _discards(facts: FileFacts, zeroed: GradientsZeroed) -> bool:
    """Is it what a backward has just computed that goes, before the optimizer sees it?"""
    if zeroed.updates:
        return False
    events = [event for event in facts.training.values() if event.root is zeroed.root]
    passes = sorted((event.order, event.kind) for event in events if event.kind in ("backward", "step"))
    before = [kind for order, kind in passes if order < zeroed.order]
    after = [kind for order, kind in passes if order > zeroed.order]
    return before[-1:] == ["backward"] and after[:1] == ["step"]


def _is_chosen(zeroed: GradientsZeroed) -> bool:
    """Do conditions around decide between this and something else?"""
    tests = [test for test, _ in zeroed.tests]
    if zeroed.parameter == "zero_grad":
        return any(_checks_numbers(test) for test in tests) or bool(tests and _has_other_mode(zeroed))
    own = f"{zeroed.parameter}."
    return any(own not in text_of(test) and text_of(test) != zeroed.parameter for test in tests)


def _checks_numbers(test: cst.BaseExpression) -> bool:
    return any(isinstance(part, cst.Name) and part.value in _CHECKS for part in inside(test))


def _has_other_mode(zeroed: GradientsZeroed) -> bool:
    """Does the same function call the same `zero_grad` in another way?"""
    function = zeroed.scope.function
    own = text_of(zeroed.site.node).replace(" ", "")
    nodes = function.outline.nodes if function is not None else ()
    calls = (node for node in nodes if isinstance(node, ast.Call) and dotted(node.func) == zeroed.callee)
    return any(ast.unparse(call).replace(" ", "") != own for call in calls)


def _fix(zeroed: GradientsZeroed) -> Fix:
    description = "Drop the gradients"
    if zeroed.parameter == "zero_grad":
        node = node_of(zeroed.site, "set_to_none", 0)
        edits: Sequence[Edit] = replacing(zeroed.site, node, "True") if node is not None else ()
    elif isinstance(zeroed.statement, cst.Expr) and zeroed.statement.value is zeroed.site.node:
        edits = replacing(zeroed.site, zeroed.site.node, f"{zeroed.parameter}.grad = None")
    else:
        edits = ()
    return Fix(description, Applicability.UNSAFE if edits else Applicability.HINT, tuple(edits))
