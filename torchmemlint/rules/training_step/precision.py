"""Whether a program speaks of another precision than float32."""

from __future__ import annotations

from torchmemlint.flow.facts import FileFacts

# Whoever writes one of these has chosen a precision, or left the choice to a framework.
_IN_FILE = (
    "autocast GradScaler amp half fp16 bf16 FP16 BF16 float16 bfloat16 float64 double set_default_dtype "
    "set_default_tensor_type mixed_precision precision torch_dtype Accelerator accelerator deepspeed fabric Fabric "
    "scaler quantize qat int8 load_in_8bit complex64"
).split()
_IN_PROJECT = "autocast GradScaler bfloat16 mixed_precision fp16".split()


def spoken_of(facts: FileFacts) -> bool:
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
