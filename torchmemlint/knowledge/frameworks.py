"""Names that tell that a file may have to do with PyTorch."""

from __future__ import annotations

# A file whose text contains none of these is not parsed: nothing in it can be about GPU memory.
RELEVANT_WORDS: tuple[str, ...] = (
    "torch",
    "lightning",
    "accelerate",
    "transformers",
    "diffusers",
    "timm",
    "fastai",
    "ignite",
    "composer",
    "deepspeed",
    "pyro",
    "skorch",
    ".backward(",
)
