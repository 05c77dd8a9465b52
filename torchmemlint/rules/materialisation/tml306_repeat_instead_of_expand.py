"""TML306 repeat-instead-of-expand."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.arguments import WrittenCall, call_at
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation, written
from torchmemlint.rules.materialisation import copies
from torchmemlint.rules.materialisation.copies import Repeated
from torchmemlint.syntax import cst
from torchmemlint.syntax.text import shortened, text_of


class RepeatInsteadOfExpand(Rule):
    """A dimension of size one is copied out with `repeat` where `expand` shows the same numbers."""

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
            f"`{written(facts, found.call, 50)}` copies a size-1 dimension `{times}` times: `.expand()` gives a view",
            evidence=[
                (found.put_in, "it has one entry here"),
                *((reading, "the copies are only read") for reading in found.readings),
            ],
            fix=Fix("Use `.expand()`", Applicability.UNSAFE, sum(others, edits)),
        )
