"""How much a caching allocator reserves for batches of different lengths, with and without expandable segments.

    python benchmarks/batch_lengths.py            # on the simulated card, half a minute
    python benchmarks/batch_lengths.py --json

A transformer with 6 layers is trained on 40 batches of 16 texts, each padded to its own longest. The lengths of the
texts are drawn by a fixed seed, from a distribution with a long tail, between 16 and 512 tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

BATCH, BATCHES, LONGEST, WIDTH, DEPTH, WORDS = 16, 40, 512, 512, 6, 10_000
MIB = 2**20


def lengths() -> list[int]:
    """Of all texts."""
    chance = random.Random(0)
    return [min(LONGEST, max(16, int(chance.lognormvariate(5, 0.6)))) for _ in range(BATCH * BATCHES)]


def batches(texts: Sequence[int]) -> list[int]:
    """The longest of each batch."""
    return [max(texts[first : first + BATCH]) for first in range(0, len(texts), BATCH)]


ORDERS: dict[str, Callable[[], list[int]]] = {
    "all as long as the longest": lambda: [max(lengths())] * BATCHES,
    "each as long as its longest": lambda: batches(lengths()),
    "rounded up to 64 tokens": lambda: [-(-longest // 64) * 64 for longest in batches(lengths())],
    "the longest batch first": lambda: sorted(batches(lengths()), reverse=True),
    "sorted, the shortest first": lambda: batches(sorted(lengths())),
}


def reserved(longest: Sequence[int], *, expandable: bool) -> tuple[int, int]:
    """MiB allocated and reserved at the peak of a training."""
    from torchmemlint.runtime import track_memory

    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = f"expandable_segments:{expandable}"
    with track_memory("simulated", fake=True, card="a100-80gb"):
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True)
        model = nn.Sequential(
            nn.Embedding(WORDS, WIDTH),
            nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False),
            nn.Linear(WIDTH, WORDS),
        ).to("cuda")
        optimizer = torch.optim.AdamW(model.parameters())
        for length in longest:
            tokens = torch.ones(BATCH, length, dtype=torch.long).to("cuda")
            scores = model(tokens)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens.flatten())
            loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
            optimizer.step()
            optimizer.zero_grad()
        return torch.cuda.max_memory_allocated() // MIB, torch.cuda.max_memory_reserved() // MIB


def main() -> None:
    """Measure all orders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    found = {}
    for name, order in ORDERS.items():
        allocated, plain = reserved(order(), expandable=False)
        found[name] = {"allocated": allocated, "reserved": plain, "expandable": reserved(order(), expandable=True)[1]}
        if not as_json:
            print(f"{name:<30}", found[name], flush=True)
    if as_json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
