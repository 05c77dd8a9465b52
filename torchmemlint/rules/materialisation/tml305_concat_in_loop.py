"""TML305 concat-in-loop."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.facts import FileFacts
from torchmemlint.knowledge.torch_api import JOINERS
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation
from torchmemlint.rules.materialisation import copies


class ConcatInLoop(Rule):
    """A tensor is put together in a loop by concatenating all of it with one more part each time."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield tensors that grow by concatenation."""
        for found in (one for formula in facts.formulas(JOINERS) for one in copies.growing(formula)):
            yield report_operation(
                self,
                facts,
                found.call,
                f"each iteration copies all of `{found.target}` to append to it",
                evidence=[
                    (found.loop, "repeated by this loop"),
                    (found.call, f"a new `{found.target}` is allocated here"),
                ],
                fix=Fix("Collect the parts in a list, and concatenate once after the loop", Applicability.HINT),
            )
