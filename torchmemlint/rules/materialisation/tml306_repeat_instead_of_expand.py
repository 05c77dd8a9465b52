"""TML306 repeat-instead-of-expand."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.arguments import WrittenCall, call_at
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation, written
from torchmemlint.rules.materialisation import copies
from torchmemlint.rules.materialisation.copies import Repeated
from torchmemlint.syntax import cst
from torchmemlint.syntax.text import shortened, text_of


class RepeatInsteadOfExpand(Rule):
    """A dimension of size one is copied out with `repeat` where `expand` shows the same numbers.

    ## What it does
    Reports `x.unsqueeze(1).repeat(1, n, 1)` and the like (`x[:, None]`, `x.view(b, 1, d)`), in one expression or by way
    of names, where all that takes the result are operations that make a tensor of their own: arithmetic, comparisons,
    `torch.cat`, losses.

    ## Why it costs memory
    `repeat` writes n copies; `expand` gives a view that reads the one there is n times. Where an operation keeps its
    operands for backward, the copies stay until then.

    ## Example
    ```python
    weighted = features * mask.unsqueeze(-1).repeat(1, 1, channels)
    ```

    ## Use instead
    ```python
    weighted = features * mask.unsqueeze(-1).expand(-1, -1, channels)
    ```

    ## Fix safety
    Unsafe: the numbers are the same, but the view shares its storage with what it shows and is not contiguous; whatever
    overwrites it in place raises. `expand` raises where there are more sizes than dimensions, which `repeat` puts in
    itself. In arithmetic even the `expand` can often go, since operands are spread anyway.

    ## When it stays silent
    The dimension is not seen to be of size one; several are repeated; the result is returned, stored, reshaped,
    overwritten or given to anything but the operations above; tests. The rule is off by default: most such copies are
    masks and positions, small beside what they are combined with.

    ## References
    - [torch.Tensor.expand](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html)
    - [torch.Tensor.repeat](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.repeat.html)
    """

    code = "TML306"
    name = "repeat-instead-of-expand"
    severity = Severity.WARNING
    on = False
    fix = Applicability.UNSAFE
    why = "the same numbers are written again and again, where a view would show them"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield copies along a dimension of size one that are only read."""
        for found in (one for formula in facts.formulas(copies.REPEAT) for one in copies.repeated(formula)):
            call = call_at(facts, facts.source.span_of(found.call.span))
            if call is not None:
                yield self._report(facts, found, call)

    def _report(self, facts: FileFacts, found: Repeated, call: WrittenCall) -> Finding:
        sizes, function = [size.value for size in call.node.args], call.node.func
        times = shortened(text_of(sizes[found.axis]), 30)
        edits = call.replacing(function.attr, "expand") if isinstance(function, cst.Attribute) else ()
        others = [call.replacing(size, "-1") for index, size in enumerate(sizes) if index != found.axis]
        return report_operation(
            self,
            facts,
            found.call,
            f"`{written(facts, found.call, 50)}` copies a dimension of size one {times} times: "
            "`expand` shows it as often without a copy",
            evidence=[
                (found.put_in, "it has one entry here"),
                *((reading, "the copies are only read") for reading in found.readings),
            ],
            fix=Fix("Use `expand`", Applicability.UNSAFE, sum(others, edits)),
        )
