"""Activations: TML301, TML303, TML304, TML310."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import convolutional, examples, images, labels


def _classifier(bench: Bench, activation: type[nn.Module]) -> object:
    return _trained(bench, convolutional(bench, activation, inplace=bench.good))


def _trained(bench: Bench, model: nn.Module) -> object:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in bench.turns():
        loss = functional.cross_entropy(model(images(bench)), labels(bench))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return optimizer


def leaky_activation(bench: Bench) -> object:
    """A convolutional classifier with LeakyReLU, in place or not."""
    return _classifier(bench, nn.LeakyReLU)


def rectified_activation(bench: Bench) -> object:
    """The same with ReLU, whose input autograd does not keep."""
    return _classifier(bench, nn.ReLU)


def copied_activation(bench: Bench) -> object:
    """The same with SiLU, in place in the bad variant: the memory is the same either way."""
    model = convolutional(bench, nn.SiLU, inplace=not bench.good)
    return _trained(bench, model)


class _Attention(nn.Module):
    """Self-attention with eight heads, its weights made or not."""

    def __init__(self, width: int, fused: bool) -> None:
        super().__init__()
        self.fused = fused
        self.inward = nn.Linear(width, 3 * width)
        self.outward = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.inward(x).unflatten(-1, (3, 8, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        if self.fused:
            out = functional.scaled_dot_product_attention(query, key, value)
        else:
            scores = query @ key.transpose(-2, -1) * query.size(-1) ** -0.5
            out = scores.softmax(-1) @ value
        mixed: torch.Tensor = self.outward(out.transpose(1, 2).flatten(2))
        return mixed


def written_out_attention(bench: Bench) -> object:
    """Layers of self-attention over 256 positions, trained."""
    width, rows = bench.size.width, max(1, bench.size.batch // 8)
    model = nn.Sequential(*(_Attention(width, bench.good) for _ in range(bench.size.depth))).to(bench.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in bench.turns():
        optimizer.zero_grad()
        model(torch.randn(rows, 256, width, device=bench.device)).square().mean().backward()
        optimizer.step()
    return optimizer


def reentrant_checkpoint(bench: Bench) -> object:
    """Blocks that are recomputed in backward, by the reentrant form or the other one."""
    width = bench.size.width
    with bench.device:
        blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.GELU())
            for _ in range(bench.size.depth)
        )
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.01)
    for _ in bench.turns():
        optimizer.zero_grad()
        features = examples(bench).requires_grad_()
        for block in blocks:
            features = checkpoint(block, features, use_reentrant=not bench.good)
        features.square().mean().backward()
        optimizer.step()
    return optimizer
