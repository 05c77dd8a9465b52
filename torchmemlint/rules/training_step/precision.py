"""Training loops on an accelerator in a program that speaks of no precision but float32."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.facts import Backward, FileFacts
from torchmemlint.flow.values import LoopMark
from torchmemlint.immutable import immutable
from torchmemlint.syntax.source_module import Site

# Whoever writes one of these has chosen a precision, or left the choice to a framework.
_IN_FILE = (
    "autocast GradScaler amp half fp16 bf16 FP16 BF16 float16 bfloat16 float64 double set_default_dtype "
    "set_default_tensor_type mixed_precision precision torch_dtype Accelerator accelerator deepspeed fabric Fabric "
    "scaler quantize qat int8 load_in_8bit complex64"
).split()
_IN_PROJECT = "autocast GradScaler bfloat16 mixed_precision fp16".split()


@immutable()
class FullPrecision:
    """A loop that trains in float32."""

    backward: Backward
    loop: LoopMark
    on_device: Site  # what brings its batches to the accelerator


def trained(facts: FileFacts) -> Iterator[FullPrecision]:
    """The loops that train on an accelerator, where nothing around speaks of another precision; one for a function."""
    found: dict[object, FullPrecision] = {}
    for backward in facts.backwards:
        function = backward.scope.function
        loop = next((mark for mark in reversed(backward.scope.loops) if mark in facts.on_device), None)
        if loop is not None and "step" in facts.effects.get(function, ()):
            found.setdefault(function, FullPrecision(backward, loop, facts.on_device[loop]))
    if found and not _spoken_of(facts):
        yield from found.values()


def _spoken_of(facts: FileFacts) -> bool:
    words = frozenset().union(*(outline.names | outline.calls for outline in facts.program.outlines()))
    text = facts.source.text
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
