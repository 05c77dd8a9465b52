"""What the `generate` of transformers' models gives: tokens, or an object that also holds tensors of each step.

Source: transformers 5.24, generation/utils.py (`GenerateDecoderOnlyOutput`, `GenerateEncoderDecoderOutput`).
"""

from __future__ import annotations

from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.memory import bare
from torchmemlint.flow.domain.refs import Object
from torchmemlint.flow.domain.values import NO_SOURCES, UNKNOWN, Value

_AS_OBJECT = "return_dict_in_generate"
_ASKED = {
    "output_scores": ("scores",),
    "output_logits": ("logits",),
    "output_attentions": ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"),
    "output_hidden_states": ("hidden_states", "encoder_hidden_states", "decoder_hidden_states"),
}
_CACHE = ("cache", "past_key_values")  # of version 5, and before


def generated(site: CallSite) -> Value:
    """Return the tokens, which are not followed; or an object whose other parts are tensors of all steps."""
    named = site.arguments.named
    asked = {name for name, value in named.items() if value.constant is True}
    if _AS_OBJECT not in asked:
        return Value(open=True)
    cached = "use_cache" not in named or named["use_cache"].constant is not False
    parts = [part for option, parts in _ASKED.items() if option in asked for part in parts]
    made = Object.of(Kind.DICT, site.point.site, site.point.context, _AS_OBJECT)  # a `ModelOutput` is one
    site.state.heap.drop(made)
    site.state.heap.put(made, "sequences", UNKNOWN)
    steps = Value(graph=bare(site.frame, NO_SOURCES, site.point))
    for part in (*parts, *(_CACHE if cached else ())):
        site.state.heap.put(made, part, steps)
    return Value(made.alone)
