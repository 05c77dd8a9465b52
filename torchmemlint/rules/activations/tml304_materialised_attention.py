"""TML304 materialised-attention."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.ops import Op
from torchmemlint.flow.names.suites import tests_live_here
from torchmemlint.knowledge import versions
from torchmemlint.rules.activations.attention import chain, rewriting
from torchmemlint.rules.activations.attention.chain import Attention, Kind
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation

_FUSED_SINCE = (2, 0)  # F.scaled_dot_product_attention; a function in C++, which the data of releases lacks
_SCALE_SINCE = (2, 1)  # its argument `scale`
# A file that names one of them has chosen already, or looks at the weights from outside.
_CHOSEN = (
    "scaled_dot_product_attention memory_efficient_attention flash_attn flex_attention xformers sdpa "
    "register_forward_hook register_full_backward_hook register_forward_pre_hook register_hook"
).split()


class MaterialisedAttention(Rule):
    """An attention makes the matrix of its weights, where the fused function would not.

    ## What it does
    Reports attention that is written out: a softmax over the last axis of queries times keys, which meets the values in
    a second product and is used for nothing else. The products may be `@`, `matmul`, `bmm`, `baddbmm` or `einsum`; in
    between may be a scale, additive or filling masks, a dropout, casts and reshapes, over as many lines of the function
    as it takes.

    ## Why it costs memory
    The scores hold one number for each pair of a query and a key in each head: for 16 heads and 4096 positions that is
    a GiB per example in 32 bits, and in training the scores after the softmax, the dropout and its mask are kept for
    backward as well. `F.scaled_dot_product_attention` computes the same in blocks, and keeps one number per query. What
    the whole saves grows with the square of the length.

    ## Example
    ```python
    attn = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    attn = self.drop(attn.softmax(dim=-1))
    x = attn @ v
    ```

    ## Use instead
    ```python
    x = F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop.p if self.drop.training else 0.0)
    ```

    ## Fix safety
    Unsafe: results are the same to rounding, but the fused kernels add up in another order, draw dropout's random
    numbers in another one, and a row that a mask of `-inf` hides completely gives zeros (NaN before torch 2.5) where it
    gave NaN; a mask must not have more axes than the scores. A scale is handed on as `scale=` (torch 2.1 and newer)
    unless it is the default; a dropout counts only while its module trains; a mask that fills with a finite number
    becomes an additive one, since a boolean one would change rows that are hidden completely (their results stay, but
    gradients now reach their queries). Tensors of three axes get a fourth, without which torch takes no fused kernel.
    Where one of the steps has no such counterpart for certain (a mask on scores of another shape, a scale that is a
    tensor), no fix is offered.

    ## When it stays silent
    The scores or weights are returned, stored, shown or used a second time; something else than these steps stands
    between (talking heads, a soft cap, a learned temperature, weights that are scaled or normalised again); what is
    added to the scores is computed from the queries or keys; the softmax is over another axis; the product runs over
    positions (channel attention); there is one query only, or the keys are a table of parameters; the file names
    `scaled_dot_product_attention` or another fused kernel already, or registers hooks; files of a test suite. There is
    no fix where the project supports torch before 2.0 (`target-torch`, else the nearest `requirements.txt` or the
    like): what is written out stays, as the branch for those releases.

    ## References
    - [torch.nn.functional.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    - [Dao et al. 2022, FlashAttention](https://arxiv.org/abs/2205.14135)
    """

    code = "TML304"
    name = "materialised-attention"
    severity = Severity.ADVICE  # correct code, and where sequences are short or windows small, good enough
    fix = Applicability.UNSAFE
    why = "the weights of all pairs of positions are in memory, and kept for backward"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield attentions whose weights need not be made."""
        target = versions.release_of(facts.target_torch)
        if tests_live_here(facts.program.within) or any(word in facts.source.text for word in _CHOSEN):
            return
        available = target >= _FUSED_SINCE
        for found in (one for formula in facts.formulas(_WORDS, _LAYERS) for one in chain.find(formula)):
            scaled = target >= _SCALE_SINCE
            edits = rewriting.edits(found, facts.source, with_scale=scaled) if available else ()
            yield report_operation(
                self,
                facts,
                found.product.op,
                "The attention weights are made for one weighted sum: `F.scaled_dot_product_attention` "
                + ("computes it without them" if available else "of torch 2.0 and newer would do without them"),
                evidence=_evidence(found),
                fix=Fix("Use `F.scaled_dot_product_attention`", Applicability.UNSAFE, edits) if edits else None,
            )


_WORDS, _LAYERS = frozenset({"softmax"}), frozenset({"Softmax"})
_SAID = {
    Kind.ADD: "a mask or bias is added to them",
    Kind.FILL: "a mask fills some of them",
    Kind.SOFTMAX: "the softmax makes weights of them: a second tensor of that size, which backward needs",
    Kind.DROPOUT: "the dropout makes a third",
}


def _evidence(found: Attention) -> list[tuple[Op, str]]:
    stages = sorted(found.past(), key=lambda stage: stage.step.op.span)
    said = [(stage.step.op, _SAID[stage.step.kind]) for stage in stages if stage.step.kind in _SAID]
    first = (found.product.op, "one score for each pair of a query and a key")
    return [first, *said, (found.sum.op, "nothing but this sum of values uses them")]
