"""TML307 pairwise-broadcast."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.origins import is_trained
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.ops import Op
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation, written
from torchmemlint.rules.materialisation.contractions import Contraction, contraction, is_of_torch, is_whole
from torchmemlint.rules.materialisation.pairs import may_pair

_WORDS = frozenset({"sum", "mean", "norm", "vector_norm", "cosine_similarity", "pairwise_distance"})
_LAYERS = frozenset({"CosineSimilarity", "PairwiseDistance"})


class PairwiseBroadcast(Rule):
    """Distances or similarities of all pairs are computed by way of every pair's features."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield results of pairs that are made by way of their features."""
        for formula in facts.formulas(_WORDS, _LAYERS):
            if "create_graph" in formula.function.unit.module.mentions:
                return
            if "cdist" in formula.function.mentions or not may_pair(formula.function):
                continue  # what it is for is known here, or there is no use for it
            for operation in formula.operations(_WORDS):
                found = contraction(formula, operation)
                if found is not None and is_of_torch(formula, found) and not is_whole(formula, found.pairs):
                    yield self._report(facts, formula, found)

    def _report(self, facts: FileFacts, formula: Formula, found: Contraction) -> Finding:
        left, right = found.pairs.left, found.pairs.right
        links: list[tuple[Op, str]] = [
            (left.put_in.op, "broadcast along one dimension"),
            (right.put_in.op, "broadcast along another"),
        ]
        if found.whole is not found.pairs.operation:
            links.append((found.pairs.operation.op, "allocated for every pair and every feature"))
        links.append((found.whole.op, "only the sum over the features is used"))
        return report_operation(
            self,
            facts,
            found.whole.op,
            f"`{written(facts, found.whole.op, 60)}` allocates (N, M, D) numbers, and uses (N, M): one for each pair",
            severity=None if _has_features(facts, formula, found) else Severity.ADVICE,
            evidence=links,
            fix=_fix(facts, formula, found),
        )


def _has_features(facts: FileFacts, formula: Formula, found: Contraction) -> bool:
    """May there be many numbers to a pair? Differences are also taken of coordinates, two or three of them.

    Products and cosines are of features; differences where a layer has made what is compared, or it is a parameter.
    """
    if found.measure in ("dot", "cosine"):
        return True
    return any(
        is_trained(formula, side.base, facts.program.contracts) for side in (found.pairs.left, found.pairs.right)
    )


def _fix(facts: FileFacts, formula: Formula, found: Contraction) -> Fix:
    title = f"Use {found.instead.rstrip(',')}"
    ending = {"squared": ").pow(2)", "euclidean": ")", "manhattan": ", p=1)"}.get(found.measure)
    left, right = found.pairs.left, found.pairs.right
    span_of, rows = facts.source.span_of, facts.source.rows
    whole = span_of(found.whole.op.span)
    nested = all(whole.contains(span_of(side.put_in.op.span)) for side in (left, right))
    if ending is None or not nested or not _are_vectors(found) or formula.function.unit.imports.get("torch") != "torch":
        return Fix(title, Applicability.HINT)
    if found.whole.keyword("keepdim") is not None or len(found.whole.operands) > 3:
        return Fix(title, Applicability.HINT)
    sides = (left, right) if max(left.axes) > max(right.axes) else (right, left)
    bases = [op for side in sides if (op := formula.written(side.base)) is not None]
    given = ", ".join(span_of(op.span).text(rows) for op in bases)
    return Fix(title, Applicability.UNSAFE, (Edit(whole, f"torch.cdist({given}{ending}"),))


def _are_vectors(found: Contraction) -> bool:
    """Do the rows follow on each other, and the features on the rows, with nothing behind?"""
    left, right = found.pairs.left, found.pairs.right
    if len(left.axes) != 1 or len(right.axes) != 1:
        return False
    last = max(left.axes | right.axes)
    if last < 0 or abs(max(left.axes) - max(right.axes)) != 1:
        return False
    shown = all(side.rank == last + 2 and side.ends for side in (left, right))
    return found.dimension == last + 1 or (found.dimension == -1 and shown)
