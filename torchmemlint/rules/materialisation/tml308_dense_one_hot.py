"""TML308 dense-one-hot."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation, written
from torchmemlint.rules.materialisation.lookups import instead_of, matters
from torchmemlint.rules.materialisation.one_hot import MAKING, WORDS, Encoded, encoded, takings


class DenseOneHot(Rule):
    """Class labels are written out as one-hot rows for an operation that takes the labels as they are.

    ## What it does
    Reports `F.one_hot(labels, n)`, `torch.eye(n)[labels]` and ones scattered into zeros, where all that takes the
    result is

    - the target of a cross entropy, which takes class labels;
    - the left side of a matrix product (or `F.linear`, or an `einsum` that sums over the classes): this looks up rows,
      as `weight[labels]` and `F.embedding` do;
    - a product that is summed over the classes: this picks one number for each label, as `gather` does.

    ## Why it costs memory
    A label is eight bytes, its one-hot row eight for each class (`F.one_hot` makes 64-bit integers), and four more for
    each class where it is made a float; a product with the row is as large once more, and backward keeps its factors.
    `torch.eye(n)` is n times n numbers before the first row is picked. Measured, rows of a table of 2,048 looked up by
    a product with a one-hot matrix: 20 times the peak of `table[labels]`. Where a few classes are looked up, the row is
    small beside what it finds: a lookup is advice, unless a number of 256 or more, the weight of a layer (a codebook, a
    vocabulary) or a row for every class there is says otherwise.

    ## Example
    ```python
    loss = F.cross_entropy(scores, F.one_hot(labels, classes).float())
    chosen = (values * F.one_hot(actions, count)).sum(dim=-1)
    vectors = torch.eye(words)[tokens] @ table
    ```

    ## Use instead
    ```python
    loss = F.cross_entropy(scores, labels)
    chosen = values.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    vectors = table[tokens]
    ```

    ## Fix safety
    Shown, never applied: which dimension holds the classes in what is looked up, and whether the labels are 64-bit
    integers, is often decided elsewhere. Results agree to rounding; a product with `inf` or `nan` in another class
    gives `nan`, which picking does not.

    ## When it stays silent
    Something else takes the one-hot rows, too: soft labels, mixup, smoothing, masks, losses that need all classes
    (dice, focal, binary cross entropy), counts per class, `nn.Linear`; the cross entropy is weighted, whose mean is
    another one for labels than for probabilities; the sum is over other dimensions than that of the classes, or it is
    not known which that is; tests.
    The rule is off by default: most lookups in published projects are of a handful of classes, where the row is small
    (docs/precision.md). It is for vocabularies, codebooks and other large tables.

    ## References
    - [torch.nn.functional.cross_entropy](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html)
    - [torch.gather](https://docs.pytorch.org/docs/stable/generated/torch.gather.html)
    """

    code = "TML308"
    name = "dense-one-hot"
    severity = Severity.WARNING
    on = False
    fix = Applicability.HINT
    why = "each label becomes a row with a number for every class, where its index would do"

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
        instead = " and ".join(dict.fromkeys(instead for _, _, instead in found))
        return report_operation(
            self,
            facts,
            made.made.op,
            f"`{written(facts, made.made.op, 50)}` writes out every class of each label: {instead}",
            severity=None if matters(formula, made, [one[0] for one in found]) else Severity.ADVICE,
            evidence=links,
            fix=Fix(f"Use `{labels}` itself", Applicability.HINT),
        )
