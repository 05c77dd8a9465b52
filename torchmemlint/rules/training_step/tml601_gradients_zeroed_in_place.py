"""TML601 gradients-zeroed-in-place."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.fact.zeroing import Shown
from torchmemlint.rules.arguments import node_of, replacing
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import inside


class GradientsZeroedInPlace(TellingRule):
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

    def tell(self, told: Told) -> Finding:
        """Say which gradients stay allocated."""
        call, shown = told.call_at(told.case.place), told.about(Shown)
        callee = text_of(call.node.func) if call is not None and isinstance(call.node, cst.Call) else told.text
        return told.finding(
            self,
            f"`{callee}` keeps the gradients allocated through the next forward pass",
            [told.link(told.case.place, shown.value), *told.called()],
            fix=_fix(call),
        )


def _fix(call: Site | None) -> Fix:
    edits: Sequence[Edit] = ()
    if call is not None and isinstance(call.node, cst.Call) and isinstance(call.node.func, cst.Attribute):
        flag = node_of(call, "set_to_none", 0)
        gradient = text_of(call.node.func.value).removesuffix(".data")
        if call.node.func.attr.value != "zero_grad":
            edits = replacing(call, call.node, f"{gradient} = None") if _is_statement(call) else ()
        elif flag is not None:
            edits = replacing(call, flag, "True")
    return Fix("Drop the gradients", Applicability.UNSAFE if edits else Applicability.HINT, tuple(edits))


def _is_statement(call: Site) -> bool:
    """Does the call stand by itself, so that an assignment may stand there?"""
    return any(isinstance(part, cst.Expr) and part.value is call.node for part in inside(call.piece.module))
