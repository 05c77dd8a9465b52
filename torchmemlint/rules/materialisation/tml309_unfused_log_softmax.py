"""TML309 unfused-log-softmax."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity, Span
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.fact.extents import is_wide
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation
from torchmemlint.flow.fact.origins import mode
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Op
from torchmemlint.rules.arguments import call_at
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation, written
from torchmemlint.rules.materialisation.unfused import Unfused, unfused
from torchmemlint.syntax import cst

_LOG = frozenset({"log"})
_WORDS = _LOG | {"log_"}
# What keeps the logarithm for its own backward; a product keeps the other factor, `kl_div` the target, an index itself.
# Counted with `torch.autograd.graph.saved_tensors_hooks` on torch 2.13.
_KEEPING = frozenset({"nll_loss", "gather"})


class UnfusedLogSoftmax(Rule):
    """A softmax or sigmoid is computed only to take its logarithm."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield logarithms of probabilities that nobody else asks for."""
        for formula in facts.formulas(_WORDS):
            for log in formula.operations(_LOG):
                found = unfused(formula, log)
                if found is not None:
                    taken = {taking.operation.name for taking in formula.takings(log) if taking.operation is not None}
                    kept = 1 + bool(found.steps) + (not taken.isdisjoint(_KEEPING))
                    kept = 0 if _is_off(facts, formula, log) else kept
                    yield self._report(facts, found, kept, _is_wide(formula, found))

    def _report(self, facts: FileFacts, found: Unfused, kept: int, wide: bool) -> Finding:
        """`kept`: tensors of this size, until backward. `wide`: is there one for every token or pixel?"""
        first = f"`{found.inner.name}` computes probabilities that only the logarithm uses"
        links: list[tuple[Op, str]] = [(found.inner.op, first)]
        links += [(step.op, "another tensor of the same size") for step in reversed(found.steps)]
        links.append((found.log.op, f"their logarithm: `{found.fused}` computes it from the logits"))
        shown = written(facts, found.log.op, 50)
        message = f"`{shown}` stores {kept} tensors for backward, where `{found.fused}` stores one"
        if kept < 2:
            message = f"`{shown}` allocates {len(found.steps) + 2} tensors, where `{found.fused}` allocates one"
        return report_operation(
            self,
            facts,
            found.log.op,
            message,
            severity=None if wide and kept > 1 else Severity.ADVICE,
            evidence=links,
            fix=_fix(facts, found),
            doubts=() if wide else (Doubt.SIZE,),
        )


def _is_wide(formula: Formula, found: Unfused) -> bool:
    """Does what is done with the probabilities, or with what they are made of, show three dimensions?"""
    return is_wide(definitions(formula.function), found.log.dst)


def _is_off(facts: FileFacts, formula: Formula, log: Operation) -> bool:
    """Is it computed with gradients off, here or in all callers?"""
    here = mode(formula, log.op, facts.program.contracts)
    return here is Mode.OFF or (here is None and facts.runs_without_gradients(formula.function.span))


def _fix(facts: FileFacts, found: Unfused) -> Fix:
    title = f"Use `{found.fused}`"
    inner, outer = (call_at(facts, facts.source.span_of(one.op.span)) for one in (found.inner, found.log))
    nested = not found.steps and found.inner.layer is None and found.inner.dst in found.log.operands[:1]
    if nested and inner is not None and outer is not None and isinstance(inner.node.func, cst.Attribute):
        whole, kept = outer.span, inner.span
        named = inner.replacing(inner.node.func.attr, found.fused)
        edits = (Edit(Span(whole.start, kept.start), ""), *named, Edit(Span(kept.end, whole.end), ""))
        return Fix(title, Applicability.UNSAFE, edits)
    return Fix(title, Applicability.HINT)
