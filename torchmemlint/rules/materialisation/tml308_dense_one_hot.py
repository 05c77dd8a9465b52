"""TML308 dense-one-hot."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.formulas import Formula, Operation, Taking
from torchmemlint.flow.fact.origins import is_weight, usual
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation, written
from torchmemlint.rules.materialisation.one_hot import LAST, MAKING, WORDS, Encoded, encoded, takings

_PRODUCTS = frozenset({"matmul", "mm", "bmm"})
_LOOKUPS = _PRODUCTS | {"linear", "einsum"}
_MANY_CLASSES = 256  # a row of so many 64-bit integers is 2 KiB


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
                found = [_told(formula, taking, axis) for taking, axis in takings(formula, made)] if made else []
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
            severity=None if _matters(formula, made, [one[0] for one in found]) else Severity.ADVICE,
            evidence=links,
            fix=Fix(f"Use `{labels}` itself", Applicability.HINT),
        )


def _matters(formula: Formula, made: Encoded, takers: list[Operation]) -> bool:
    """Are the rows large beside what is made of them?

    A product with scores of each class is as large as they are. A lookup gives a row of the table for each label;
    beside it the one-hot row is small, unless there are many classes: those of a layer's table, or a number says so.
    """
    if made.every_class or any(operation.name not in _LOOKUPS for operation in takers):
        return True
    classes = usual(formula, made.made.argument("num_classes", 1)) if made.made.name == "one_hot" else None
    if isinstance(classes, int):
        return classes >= _MANY_CLASSES
    return any(is_weight(formula, temp) for operation in takers for temp in operation.operands)


def _told(formula: Formula, taking: Taking, axis: frozenset[int]) -> tuple[Operation, str, str] | None:
    """The operation that does as well with indices, what it does with the rows, and what to use; None for others."""
    operation = taking.operation
    if operation is None:
        return None
    if operation.name == "cross_entropy" and operation.argument("target", 1) == taking.temp:
        if _is_weighted(operation):
            return None
        return operation, "the target of a cross entropy, which may be class labels", "cross entropy takes the labels"
    if operation.name in _PRODUCTS | {"linear"} and taking.index == 0 and LAST in axis and operation.layer is None:
        return operation, "a product with one-hot rows looks up rows of the other factor", "index the table instead"
    if operation.name == "einsum" and taking.index > 0 and LAST in axis:
        if _sums_over_last(formula, operation, taking.index):
            what = "a sum over one-hot classes looks up entries of the other factor"
            return operation, what, "index the table instead"
        return None
    return _picked(formula, operation, axis) if operation.name == "mul" else None


def _is_weighted(loss: Operation) -> bool:
    """Has a cross entropy weights of classes?"""
    made, position = (loss, 2) if loss.layer is None else (loss.layer, 0)
    return made.argument("weight", position) is not None


def _sums_over_last(formula: Formula, einsum: Operation, index: int) -> bool:
    """Is the last dimension of an operand of `einsum` summed away together with one of another operand?"""
    equation = formula.constant(einsum.operands[0])
    if not isinstance(equation, str):
        return False
    terms, arrow, result = equation.replace(" ", "").partition("->")
    letters = terms.split(",")
    if not arrow or len(letters) != len(einsum.operands) - 1 or not letters[index - 1].isalpha():
        return False
    last = letters[index - 1][-1]
    return last not in result and sum(last in term for term in letters) == 2


def _picked(formula: Formula, product: Operation, axis: frozenset[int]) -> tuple[Operation, str, str] | None:
    """A product that is summed over the dimension of the classes, and taken by nothing else."""
    taken = formula.takings(product)
    while len(taken) == 1 and (operation := taken[0].operation) is not None:
        if operation.name == "sum" and taken[0].index == 0:
            dimension = operation.argument("dim", 1)
            over = formula.integer(dimension)
            if dimension is not None and (over is None or over not in axis):
                return None
            what = "summed over the classes, a product with one-hot rows picks a number for each label"
            return operation, what, "`gather` picks the numbers"
        if operation.name != "neg":
            return None
        taken = formula.takings(operation)
    return None
