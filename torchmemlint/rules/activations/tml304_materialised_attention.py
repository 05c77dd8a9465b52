"""TML304 materialised-attention."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.ops import Op
from torchmemlint.flow.names.suites import tests_live_here
from torchmemlint.knowledge import autograd, versions
from torchmemlint.rules.activations.attention import chain, rewriting
from torchmemlint.rules.activations.attention.chain import Attention, Kind
from torchmemlint.rules.activations.attention.choices import FUSED, naming
from torchmemlint.rules.activations.attention.softmaxes import is_softmax, tensors
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation

_FUSED_SINCE = (2, 0)  # F.scaled_dot_product_attention; a function in C++, which the data of releases lacks
_SCALE_SINCE = (2, 1)  # its argument `scale`
# A file that names one of them has chosen already, or looks at the weights from outside.
_CHOSEN = frozenset("memory_efficient_attention flash_attn flex_attention xformers sdpa".split())
_CHOSEN |= autograd.names("module-hooks") | autograd.names("tensor-hooks")


class MaterialisedAttention(Rule):
    """An attention makes the matrix of its weights, where the fused function would not."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield attentions whose weights need not be made."""
        target = versions.release_of(facts.target_torch)
        if tests_live_here(facts.program.within) or any(word in facts.source.text for word in _CHOSEN):
            return
        available = target >= _FUSED_SINCE
        fused = sum(1 for formula in facts.formulas(frozenset(), _NAMING) for _ in naming(formula))
        softmaxes = {name for name, formula in facts.functions(_PRODUCTS) if is_softmax(formula)}
        for found in (one for formula in facts.formulas(_WORDS | softmaxes, _LAYERS) for one in chain.find(formula)):
            if fused and fused != found.beside(FUSED):
                continue
            scaled = target >= _SCALE_SINCE
            edits = rewriting.edits(found, facts, with_scale=scaled) if available else ()
            yield report_operation(
                self,
                facts,
                found.product.op,
                "the attention weights are stored as a whole matrix, which `F.scaled_dot_product_attention` avoids"
                + ("" if available else " (torch 2.0)"),
                evidence=_evidence(found),
                fix=Fix("Use `F.scaled_dot_product_attention`", Applicability.UNSAFE, edits) if edits else None,
            )


_NAMING = frozenset({FUSED})
_PRODUCTS = chain.PRODUCTS | {" @ "}
_WORDS, _LAYERS = frozenset({"softmax"}), frozenset({"Softmax"})
_SAID = {
    Kind.ADD: "a mask or bias is added to the scores",
    Kind.FILL: "a mask fills some of the scores",
    Kind.SOFTMAX: "softmax allocates a second tensor of that size, which backward needs",
    Kind.DROPOUT: "the dropout allocates a third",
}


def _evidence(found: Attention) -> list[tuple[Op, str]]:
    stages = sorted(found.past(), key=lambda stage: stage.step.op.span)
    said = [(stage.step.op, _SAID[stage.step.kind]) for stage in stages if stage.step.kind in _SAID]
    within = [op for stage in stages if stage.step.kind is Kind.SOFTMAX for op in tensors(found.formula, stage.step.op)]
    said += [(op, "the softmax is computed in steps, and allocates a tensor of that size here") for op in within]
    first = (found.product.op, "one score for each pair of a query and a key")
    return [first, *said, (found.sum.op, "only this weighted sum uses the weights")]
