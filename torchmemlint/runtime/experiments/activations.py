"""Activations: TML301."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import convolutional, images, labels


def _classifier(bench: Bench, activation: type[nn.Module]) -> object:
    model = convolutional(bench, activation, inplace=bench.good)
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
