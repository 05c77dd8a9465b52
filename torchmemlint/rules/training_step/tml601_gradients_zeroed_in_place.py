"""TML601 gradients-zeroed-in-place."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Severity
from torchmemlint.flow.fact.zeroing import Shown
from torchmemlint.rules.arguments import WrittenCall
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.told import Told
from torchmemlint.syntax import cst
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
        callee = told.call.callee if told.call is not None else told.text
        return told.finding(
            self,
            f"`{callee}` keeps the gradients allocated through the next forward pass",
            [told.link(told.case.place, told.about(Shown).value), *told.called()],
            fix=offered("Drop the gradients", Applicability.UNSAFE, _edits(told.call)),
        )


def _edits(call: WrittenCall | None) -> tuple[Edit, ...]:
    if call is None:
        return ()
    owner, _, method = call.callee.rpartition(".")
    if method == "zero_grad":
        flag = call.argument("set_to_none", 0)
        return call.replacing(flag, "True") if flag is not None else ()
    return call.replacing(call.node, f"{owner.removesuffix('.data')} = None") if _is_statement(call) else ()


def _is_statement(call: WrittenCall) -> bool:
    """Does the call stand by itself, so that an assignment may stand there?"""
    return any(isinstance(part, cst.Expr) and part.value is call.node for part in inside(call.piece.module))
