"""Training steps of a large transformer without a GPU and without computing them: the time, the host's memory.

Prints a line of Markdown: parameters, seconds for the steps, the resident peak of this process, and what the model of
the allocator says of the simulated card. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from torchmemlint.runtime import track_memory

GB = 1e9


class Block(nn.Module):
    """One layer of a causal transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(0.1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Attention, then the feed-forward part."""
        batch, length, width = values.shape
        parts = self.project(self.first(values)).view(batch, length, 3, self.heads, width // self.heads)
        attended = F.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4).unbind(0), is_causal=True)
        values = values + self.dropout(self.out(attended.transpose(1, 2).reshape(batch, length, width)))
        return values + self.dropout(self.feed(self.second(values)))


class Transformer(nn.Module):
    """Embeddings, blocks, a head."""

    def __init__(self, layers: int, width: int, heads: int, words: int, length: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores for each next word."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.words(tokens) + self.places(places))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--words", type=int, default=50257)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--card", default="h100")
    options = parser.parse_args()
    begin = time.perf_counter()
    with track_memory("simulated", fake=True, card=options.card) as memory:
        model = Transformer(options.layers, options.width, options.heads, options.words, options.length).to("cuda")
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(options.steps):
            tokens = torch.randint(0, options.words, (options.batch, options.length), device="cuda")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        parameters = sum(parameter.numel() for parameter in model.parameters())
    seconds = time.perf_counter() - begin
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print("| parameters | steps | seconds | resident peak | allocated | reserved | backend |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print(
        f"| {parameters / 1e6:.0f} M | {options.steps} | {seconds:.1f} | {resident / GB:.2f} GB "
        f"| {memory.peak / GB:.1f} GB | {(memory.peak_reserved or 0) / GB:.0f} GB | {memory.backend.describe()} |"
    )


if __name__ == "__main__":
    main()
