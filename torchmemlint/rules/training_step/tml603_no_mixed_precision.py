"""TML603 no-mixed-precision."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import is_test
from torchmemlint.rules.told import Told


class NoMixedPrecision(TellingRule):
    """A model is trained on an accelerator in float32 alone."""

    def tell(self, told: Told) -> Finding | None:
        """Say which backward pass runs in float32, unless somebody has thought of it."""
        if is_test(told.facts) or _is_spoken_of(told.facts):
            return None
        place, (moved, *_) = told.case.place, told.case.moves
        return told.finding(
            self,
            f"`{told.text_of(place)}`: forward and backward run entirely in float32 on the GPU",
            [
                told.link(moved, "moves the batches of this loop to the GPU"),
                told.link(place, "differentiates what was computed in float32: nothing asks for another precision"),
                *told.called(),
            ],
            hint='Run the forward pass under `torch.autocast("cuda", dtype=torch.bfloat16)`',
        )


# Whoever writes one of these has chosen a precision, or left the choice to a framework.
_IN_FILE = (
    "autocast GradScaler amp half fp16 bf16 FP16 BF16 float16 bfloat16 float64 double set_default_dtype "
    "set_default_tensor_type mixed_precision precision torch_dtype Accelerator accelerator deepspeed fabric Fabric "
    "scaler quantize qat int8 load_in_8bit complex64"
).split()
_IN_PROJECT = "autocast GradScaler bfloat16 mixed_precision fp16".split()


def _is_spoken_of(facts: FileFacts) -> bool:
    """Does a file, or its project, speak of a precision?"""
    words = frozenset().union(*(outline.names for outline in facts.program.outlines()))
    text = facts.source.text
    if "torch.accelerator" in text:
        words -= {"accelerator"}  # the device, and no object of a framework
    if not words.isdisjoint(_IN_FILE) or any(f'"{word}"' in text or f"'{word}'" in text for word in _IN_FILE):
        return True
    if any(f"{word}" in name for name in words for word in ("precision", "autocast", "fp16", "bf16")):
        return True
    project = facts.program.project
    if project is None:
        return False
    for word in _IN_PROJECT:
        files = project.mentioning(word, facts.path)
        if files is None or files:
            return True
    return False
