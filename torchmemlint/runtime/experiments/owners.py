"""What holds networks and tensors beside graphs: TML804 and TML805."""

from __future__ import annotations

import functools

import torch
from torch import nn

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import examples, perceptron


def cached_networks(bench: Bench) -> object:
    """A new network for each fold, and a function that is given each of them."""

    def names(network: nn.Module) -> list[str]:
        return [name for name, _ in network.named_parameters()]

    asked = names if bench.good else functools.lru_cache(maxsize=None)(names)
    for _ in bench.turns():
        network = perceptron(bench)
        network(examples(bench)).sum().backward()
        asked(network)
    return asked


def predictions_of_epochs(bench: Bench) -> object:
    """A metric that keeps what it is given, over epochs of two batches."""
    model = perceptron(bench)
    kept: list[torch.Tensor] = []
    with torch.no_grad():
        for turn in bench.turns():
            kept.append(model(examples(bench)).repeat(1, 32))
            if bench.good and turn % 2 == 1:
                kept.clear()
    return kept
