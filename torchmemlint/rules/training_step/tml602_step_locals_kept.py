"""TML602 step-locals-kept."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.extents import DIMENSIONS
from torchmemlint.flow.fact.outcomes import Held
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told
from torchmemlint.syntax.text import shortened


class StepLocalsKept(TellingRule):
    """A large result of one iteration is still there while the next one runs its forward pass.

    ## What it does
    Reports `logits = model(x)` in a loop with gradients off, where `logits` has something for every token or pixel and
    is neither deleted nor bound to something else before the loop comes round. Off by default: it is worth a `del` only
    where that pass runs out of memory.

    ## Why it costs memory
    A name keeps its value until it is bound again, and that happens after the next forward pass has run. With
    gradients off the peak lies in forward, where the old result now lies beside the new activations: the peak is higher
    by one result. After a backward it hardly counts, as the peak is elsewhere then: a scalar loss is 512 bytes.

    ## Example
    ```python
    with torch.no_grad():
        for image, mask in loader:
            logits = model(image)
            hits += (logits.permute(0, 2, 3, 1).argmax(-1) == mask).sum()
    ```

    ## Use instead
    ```python
    with torch.no_grad():
        for image, mask in loader:
            logits = model(image)
            hits += (logits.permute(0, 2, 3, 1).argmax(-1) == mask).sum()
            del logits
    ```
    A function for the body of the loop does the same: its names go when it returns.

    ## Fix safety
    Only a hint: `del` needs to stand after the last use on every path, and other names may hold the result, too.

    ## When it stays silent
    - Nothing shows that the result has three dimensions or more: neither its network's class nor how it is used.
    - The loop records a graph or runs a backward pass.
    - The name is deleted, or bound to something else before the loop comes round or before the pass runs again.
    - The result is stored or yielded anyway, or needed by the next pass or behind the loop.
    - Tests.

    ## References
    - [PyTorch FAQ: don't hold onto tensors you don't need](https://docs.pytorch.org/docs/stable/notes/faq.html)
    """

    code = "TML602"
    name = "step-locals-kept"
    severity = Severity.ADVICE
    on = False
    fix = Applicability.HINT
    why = "the peak of a pass without gradients lies in forward, and is higher by the result of the last iteration"

    def tell(self, told: Told) -> Finding:
        """Say which variable holds the last result."""
        case, held = told.case, told.about(Held)
        callee = shortened(told.call.callee, 40) if told.call is not None else told.text_of(case.place)
        large = f"`{held.name}` has at least {DIMENSIONS} dimensions: something for each position"
        if held.wide is not None:
            large = f"a `{held.wide.rpartition('.')[2]}` predicts something for every token or pixel"
        return told.finding(
            self,
            f"`{held.name}` still holds the last iteration's result while `{callee}(...)` runs again",
            [
                told.link(case.place, f"`{callee}(...)` runs with gradients off: the peak lies in it"),
                told.link(held.shown, large),
                *told.around(f"comes round with `{held.name}` bound"),
                *told.called(),
            ],
            fix=Fix(f"`del {held.name}` after its last use, or make the loop's body a function", self.fix),
        )
