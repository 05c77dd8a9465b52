"""TML311 full-vocabulary-logits."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.origins import mode
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.ops import GetAttribute, Op
from torchmemlint.rules.arguments import call_at
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import offered, report_operation, written
from torchmemlint.rules.materialisation.logits import LOGITS, Looked, Whole, looked_up, whole

_LOG = frozenset({"log_softmax"})


class FullVocabularyLogits(Rule):
    """Scores of the whole vocabulary are computed for positions that nobody asks for, or to look one of each up."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield passes of which one position is used, and logarithms of which one number is."""
        for formula in facts.formulas(frozenset({LOGITS})):
            for call, reads in _reads(formula).items():
                found = whole(formula, call, reads, facts.program.contracts)
                if found is not None:
                    yield self._passes(facts, found)
        for formula in facts.formulas(_LOG):
            for log in formula.operations(_LOG):
                looked = looked_up(formula, log)
                if looked is not None:
                    yield self._looks_up(facts, formula, looked)

    def _passes(self, facts: FileFacts, found: Whole) -> Finding:
        shown = written(facts, found.call, 50)
        return report_operation(
            self,
            facts,
            found.call,
            f"`{shown}` computes logits of all positions, but only one is used",
            evidence=[(use, f"`{written(facts, use, 40)}` takes one position of each sequence") for use in found.uses],
            fix=_fix(facts, found),
            doubts=() if found.known else (Doubt.HEAD,),
        )

    def _looks_up(self, facts: FileFacts, formula: Formula, found: Looked) -> Finding:
        copies: list[tuple[Op, str]] = [(found.cast, "a copy of all logits in float32")] if found.cast else []
        does = "stores" if _records(facts, formula, found.log.op) else "allocates"
        shown = written(facts, found.log.op, 50)
        return report_operation(
            self,
            facts,
            found.log.op,
            f"`{shown}` {does} a tensor as large as the logits, but one number per token is used",
            severity=None if found.is_vocabulary else Severity.ADVICE,
            evidence=[*copies, (found.gather, "picks one number per token, and nothing else uses the result")],
            fix=Fix("Compute `log_softmax` and `gather` of one sequence at a time", Applicability.HINT),
            doubts=() if found.is_vocabulary else (Doubt.SIZE,),
        )


def _reads(formula: Formula) -> dict[Op, list[GetAttribute]]:
    """Return where the logits of results are read, by the calls that give those."""
    found: dict[Op, list[GetAttribute]] = {}
    for op in operations(formula.function.body):
        if isinstance(op, GetAttribute) and op.name == LOGITS and (call := formula.made(op.base)) is not None:
            found.setdefault(call, []).append(op)
    return found


def _records(facts: FileFacts, formula: Formula, op: Op) -> bool:
    """Are gradients on, as far as is seen?"""
    here = mode(formula, op, facts.program.contracts)
    return here is not Mode.OFF and not (here is None and facts.runs_without_gradients(formula.function.span))


def _fix(facts: FileFacts, found: Whole) -> Fix:
    call = call_at(facts, facts.source.span_of(found.call.span)) if found.is_last and found.known else None
    return offered(
        "Pass `logits_to_keep=1`" if found.is_last else "Apply the head to the position that is used",
        Applicability.UNSAFE,
        call.adding("logits_to_keep=1") if call is not None else (),
    )
