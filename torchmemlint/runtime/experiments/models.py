"""The small real models that experiments train: a perceptron, a convolutional network, a transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from torchmemlint.runtime.experiments.base import Bench

CLASSES = 10


def perceptron(bench: Bench, deeper: int = 1) -> nn.Sequential:
    """Linear layers with GELU between, and a classifier: what most of these experiments train.

    `deeper` multiplies the number of layers.
    """
    width = bench.size.width
    layers: list[nn.Module] = []
    with bench.device:
        for _ in range(bench.size.depth * deeper):
            layers += [nn.Linear(width, width), nn.GELU()]
        return nn.Sequential(*layers, nn.Linear(width, CLASSES))


def convolutional(bench: Bench, activation: type[nn.Module], **keywords: object) -> nn.Sequential:
    """Convolution, batch norm and activation, so many times, and a classifier."""
    channels = 16
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1)]
    for _ in range(bench.size.depth):
        layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), activation(**keywords)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)).to(bench.device)


def examples(bench: Bench) -> torch.Tensor:
    """A batch of features."""
    return torch.randn(bench.size.batch, bench.size.width, device=bench.device)


def labels(bench: Bench) -> torch.Tensor:
    """The classes of a batch."""
    return torch.randint(CLASSES, (bench.size.batch,), device=bench.device)


def images(bench: Bench, side: int = 32) -> torch.Tensor:
    """A batch of images."""
    return torch.randn(bench.size.batch, 3, side, side, device=bench.device)
