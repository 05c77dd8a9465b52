"""TML308 dense-one-hot."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation, written
from torchmemlint.rules.materialisation.lookups import instead_of, matters
from torchmemlint.rules.materialisation.one_hot import MAKING, WORDS, Encoded, encoded, takings


class DenseOneHot(Rule):
    """Class labels are written out as one-hot rows for an operation that takes the labels as they are."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield one-hot tensors that only take the way round to an index."""
        for formula in facts.formulas(WORDS):
            for operation in formula.operations(MAKING):
                made = encoded(formula, operation)
                found = [instead_of(formula, taking, axis) for taking, axis in takings(formula, made)] if made else []
                if made is not None and found and all(found):
                    yield self._report(facts, formula, made, [one for one in found if one])

    def _report(
        self, facts: FileFacts, formula: Formula, made: Encoded, found: list[tuple[Operation, str, str]]
    ) -> Finding:
        labels = written(facts, formula.written(made.indices) or made.made.op, 30)
        links = [(made.made.op, made.how), *((operation.op, what) for operation, what, _ in found)]
        large = matters(formula, made, [one[0] for one in found])
        instead = " and ".join(dict.fromkeys(instead for _, _, instead in found))
        return report_operation(
            self,
            facts,
            made.made.op,
            f"`{written(facts, made.made.op, 50)}` allocates a dense one-hot tensor: {instead}",
            severity=None if large else Severity.ADVICE,
            doubts=() if large else (Doubt.SIZE,),
            evidence=links,
            fix=Fix(f"Use `{labels}` directly", Applicability.HINT),
        )
