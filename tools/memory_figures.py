"""Work out the figures of the pages about memory, from the library itself: no GPU is used, nothing is typed by hand.

    python tools/memory_figures.py                # docs/memory.json
    python tools/documents.py                     # put them into the pages

What a model takes is what `torchmemlint estimate` says of it; blocks and segments are the allocator model's.
`tests/runtime/test_memory_pages.py` works all of it out again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

FILE = Path(__file__).resolve().parent.parent / "docs" / "memory.json"
WIDTH, DEPTH, HEADS, WORDS, TOKENS = 512, 8, 8, 16_384, 512
BATCHES = (1, 8, 32)
BATCH = 8
CHANNELS, PIXELS, IMAGES = 64, 64, 8
MIB = 1 << 20
REQUESTS = (4, 513, MIB, MIB + 1, 10 * MIB, 21 * MIB)


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.mixed, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention, then a perceptron, each added to its input."""
        rows, tokens, _ = x.shape
        parts = self.mixed(self.norms[0](x)).view(rows, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(found.transpose(1, 2).reshape(rows, tokens, -1))
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x))))


class Language(nn.Module):
    """A small language model."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.scores = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores of each word at each token."""
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        scores: torch.Tensor = self.scores(x)
        return scores


def plan(batch: int = BATCH, **changes: Any) -> Any:
    """How the language model is trained."""
    from torchmemlint.runtime.estimates.plan import Input, Plan

    return replace(Plan((Input((batch, TOKENS), "int64"),)), **changes)


def used(factory: Callable[[], nn.Module], wanted: Any) -> dict[str, Any]:
    """What a plan takes, in bytes."""
    from torchmemlint.runtime.estimates.stepping import run

    use = run(factory, wanted)
    kinds = {kind.label: nbytes for kind, nbytes in use.by_kind.items()}
    return {
        "peak": use.peak,
        "reserved": use.reserved,
        "workspace": use.workspace,
        "saved": use.saved,
        "phase": use.phase,
        "parameters": use.parameters,
        "kinds": kinds,
    }


def remedies() -> list[dict[str, Any]]:
    """What each change of the plan leaves of the peak."""
    from torchmemlint.runtime.estimates.remedies import remedies as known

    return [
        {"name": remedy.name, "price": remedy.price, **used(Language, remedy.plan)}
        for remedy in known(plan())
        if "optimizer sgd" not in remedy.name
    ]


def optimizers() -> dict[str, float]:
    """Bytes of state for each parameter of the language model."""
    from torchmemlint.runtime.estimates.optimizers import OPTIMIZERS

    found = {}
    for name in OPTIMIZERS:
        use = used(Language, plan(1, optimizer=name))
        found[name] = use["kinds"].get("optimizer state", 0) / use["parameters"]
    return found


def pass_alone(*, gradients: bool) -> int:
    """The peak of one forward pass of the language model, beside its parameters."""
    from torchmemlint.runtime.memory import track_memory

    with track_memory("simulated", fake=True) as memory:
        with torch.device("cuda"):
            model = Language().eval()
            tokens = torch.zeros(BATCH, TOKENS, dtype=torch.long)
        with torch.set_grad_enabled(gradients):
            model(tokens)
        parameters = sum(one.numel() * one.element_size() for one in model.parameters())
    return memory.peak - parameters


def activations() -> dict[str, dict[str, int]]:
    """What an activation between two convolutions saves beyond what these do, out of place and in place."""
    found: dict[str, dict[str, int]] = {}

    def between(*layers: nn.Module) -> Callable[[], nn.Module]:
        return lambda: nn.Sequential(
            nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), *layers, nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
        )

    from torchmemlint.runtime.estimates.plan import Input, Plan

    wanted = Plan((Input((IMAGES, CHANNELS, PIXELS, PIXELS)),), "sgd")
    without = used(between(), wanted)["saved"]
    for name in ("ReLU", "LeakyReLU", "ELU", "SiLU", "GELU"):
        kind = getattr(nn, name)
        found[name] = {"out of place": used(between(kind()), wanted)["saved"] - without}
        if name != "GELU":
            found[name]["in place"] = used(between(kind(inplace=True)), wanted)["saved"] - without
    return found


def attention() -> dict[str, int]:
    """What the attention of one layer saves: with its weights, and by the fused function."""
    from torchmemlint.runtime.estimates.plan import Input, Plan

    class Manual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fused = False
            self.mixed = nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            parts = self.mixed(x).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            if self.fused:
                return functional.scaled_dot_product_attention(*parts)
            q, k, v = parts
            return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ v

    class Fused(Manual):
        def __init__(self) -> None:
            super().__init__()
            self.fused = True

    wanted = Plan((Input((BATCH, TOKENS, WIDTH)),), "sgd")
    return {"by hand": used(Manual, wanted)["saved"], "fused": used(Fused, wanted)["saved"]}


def allocator() -> list[tuple[int, int, int]]:
    """Requests, with the block and the segment that serve each in an empty cache."""
    from torchmemlint.runtime.simulated.allocator import CachingAllocator

    found = []
    for request in REQUESTS:
        memory = CachingAllocator()
        memory.allocate(request)
        found.append((request, memory.allocated, memory.reserved))
    return found


def fixed() -> dict[str, Any]:
    """What a process takes beside tensors."""
    from torchmemlint.runtime.estimates.estimate import CONTEXT
    from torchmemlint.runtime.simulated.cards import WORKSPACE, WORKSPACE_HOPPER

    return {"context": list(CONTEXT), "workspace": WORKSPACE, "workspace on Hopper": WORKSPACE_HOPPER}


def figures() -> dict[str, Any]:
    """All of them, as JSON's types."""
    dtypes = ("float64", "float32", "bfloat16", "float16", "int64", "int8", "bool")
    found = {
        "dtypes": {name: getattr(torch, name).itemsize for name in dtypes},
        "batches": {str(batch): used(Language, plan(batch)) for batch in BATCHES},
        "remedies": remedies(),
        "optimizers": optimizers(),
        "pass": {"recording": pass_alone(gradients=True), "not recording": pass_alone(gradients=False)},
        "activations": activations(),
        "attention": attention(),
        "allocator": allocator(),
        "fixed": fixed(),
        "model": {"width": WIDTH, "depth": DEPTH, "words": WORDS, "tokens": TOKENS, "batch": BATCH, "heads": HEADS},
        "image": {"channels": CHANNELS, "pixels": PIXELS, "images": IMAGES},
    }
    return dict(json.loads(json.dumps(found)))


def main() -> int:
    """Write the file."""
    FILE.write_text(json.dumps({"torch": torch.__version__, **figures()}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
