"""TML602 step-locals-kept."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow import step_locals
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import is_test, report
from torchmemlint.syntax.text import shortened


class StepLocalsKept(Rule):
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
    Nothing shows that the result has three dimensions or more; gradients are on; the name is deleted, or bound to
    something else in the same iteration; the result is kept, returned or yielded anyway; tests.

    ## References
    - [PyTorch FAQ: don't hold onto tensors you don't need](https://docs.pytorch.org/docs/stable/notes/faq.html)
    """

    code = "TML602"
    name = "step-locals-kept"
    severity = Severity.ADVICE
    on = False
    fix = Applicability.HINT
    why = "the peak of a pass without gradients lies in forward, and is higher by the result of the last iteration"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield results that outlive their iteration."""
        if is_test(facts):
            return
        for local in step_locals.kept(facts):
            call = shortened(local.call.callee, 40)
            yield report(
                self,
                facts,
                local.site,
                f"`{local.name}` still holds the last iteration's result while `{call}(...)` runs again",
                evidence=[
                    (local.call.site, f"`{call}(...)` runs with gradients off: the peak lies in it"),
                    local.large,
                    (local.loop, f"comes round with `{local.name}` bound"),
                ],
                fix=Fix(f"`del {local.name}` after its last use, or make the loop's body a function", self.fix),
            )
