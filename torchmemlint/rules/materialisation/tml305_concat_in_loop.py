"""TML305 concat-in-loop."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts
from torchmemlint.knowledge.torch_api import JOINERS
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation
from torchmemlint.rules.materialisation import copies


class ConcatInLoop(Rule):
    """A tensor is put together in a loop by concatenating all of it with one more part each time.

    ## What it does
    Reports `out = torch.cat([out, part])` (also `hstack`, `vstack`, `concat`) in a loop that does nothing else with
    `out` than to look at its shape.

    ## Why it costs memory
    It costs time, more than memory: each round copies what was collected so far, so that n parts are copied about n²/2
    times in all. The allocator is asked for a slightly larger block each time and finds no use for the former ones,
    which splits up its memory; the peak is that of a list concatenated once, to within a part (measured 11.3 and
    10.5 MB).

    ## Example
    ```python
    features = torch.empty(0, width)
    for batch in loader:
        features = torch.cat([features, encode(batch)])
    ```

    ## Use instead
    ```python
    parts = []
    for batch in loader:
        parts.append(encode(batch))
    features = torch.cat(parts)
    ```

    ## Fix safety
    Shown, never applied: where the tensor begins, and whether the loop may not run at all, is for the author to say.

    ## When it stays silent
    The loop reads the tensor (a decoder that goes on with what it has so far, dense connections) or assigns it
    otherwise; the loop is of another function; tests. The rule is off by default, as it is about time: a few rounds of
    small tensors cost nothing.

    ## References
    - [torch.cat](https://docs.pytorch.org/docs/stable/generated/torch.cat.html)
    """

    code = "TML305"
    name = "concat-in-loop"
    severity = Severity.ADVICE
    on = False
    fix = Applicability.HINT
    why = "each round copies all that was collected before"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield tensors that grow by concatenation."""
        for found in (one for formula in facts.formulas(JOINERS) for one in copies.growing(formula)):
            yield report_operation(
                self,
                facts,
                found.call,
                f"each round of the loop copies all of `{found.target}` to add a part to it",
                evidence=[(found.loop, "the loop"), (found.call, f"`{found.target}` is made anew with a part more")],
                fix=Fix("Collect the parts in a list and concatenate once", Applicability.HINT),
            )
