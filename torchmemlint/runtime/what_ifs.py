"""Changes of a training program that `torchmemlint fit` tries. What each does is in `altering.py`. Knows no torch."""

from __future__ import annotations

from collections.abc import Sequence

from torchmemlint.immutable import immutable

GPUS = 4
"""That share the work, where that is the change, if nobody says how many."""
ALTERING = "torchmemlint.runtime.altering:alteration"
"""What a child process is told to apply one with: `Order.analysis`; its name is the option `what_if`."""


@immutable()
class WhatIf:
    """A change. `needs` says what a program must have for it to be applied."""

    name: str
    words: str
    price: str
    needs: str


WHAT_IFS = (
    WhatIf(
        "checkpointing",
        "activation checkpointing of all repeated blocks",
        "a second forward pass",
        "a network that trains, with blocks of one class beside each other, or a long nn.Sequential",
    ),
    WhatIf(
        "autocast",
        "bfloat16 autocast around each forward pass",
        "rounding; usually faster",
        "a network that trains without autocast",
    ),
    WhatIf("bf16", "bfloat16 parameters", "rounding of each update", "a network in float32"),
    WhatIf(
        "accumulation",
        "batches in 4 parts, with gradients accumulated",
        "smaller kernels; batch norm differs",
        "a DataLoader with a batch size of at least 4",
    ),
    WhatIf("sgd", "SGD instead of the optimizer", "another optimizer altogether", "an optimizer of torch.optim"),
    WhatIf("adafactor", "Adafactor instead of the optimizer", "factored moments", "an optimizer of torch.optim"),
    WhatIf(
        "adam-8bit",
        "8-bit AdamW instead of the optimizer, as bitsandbytes has it",
        "states of a byte; another optimizer",
        "an optimizer of torch.optim",
    ),
    WhatIf(
        "one-by-one",
        "the optimizer updates tensor by tensor (`foreach=False`)",
        "a slower step",
        "an optimizer of torch.optim that would update all tensors at once",
    ),
    WhatIf(
        "freezing",
        "all that comes before the last block frozen",
        "the rest does not train",
        "a network that trains, with blocks of one class beside each other",
    ),
    WhatIf(
        "lora",
        "LoRA of rank 8 on all nn.Linear, the rest frozen",
        "only the adapters train",
        "a network that trains, with nn.Linear, and an optimizer of torch.optim",
    ),
    WhatIf(
        "half-length",
        "sequences of half the length",
        "less context",
        "a DataLoader that gives integer tensors of (batch, length), or a network that is called with them",
    ),
    WhatIf(
        "half-answer",
        "half as many new tokens",
        "shorter answers",
        "transformers' `generate`, without beams",
    ),
    WhatIf(
        "zero",
        "the optimizer's states shared out over some GPUs (ZeRO, stage 1)",
        "that many GPUs; each sends what it updates",
        "no process group of its own, and an optimizer of torch.optim",
    ),
    WhatIf(
        "fsdp",
        "parameters, gradients and states shared out over some GPUs (FSDP2)",
        "that many GPUs; each gathers block after block",
        "no process group of its own, and a network that trains",
    ),
)
BY_NAME = {one.name: one for one in WHAT_IFS}


def chosen(names: Sequence[str]) -> tuple[WhatIf, ...]:
    """The changes of these names, in the order of the table; `all` names all."""
    return WHAT_IFS if "all" in names else tuple(one for one in WHAT_IFS if one.name in names)
