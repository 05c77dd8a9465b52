"""The training step: TML601, TML605."""

from __future__ import annotations

import contextlib

import torch

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import examples, perceptron


def zeroed_gradients(bench: Bench) -> object:
    """Gradients that are zeroed before each step, or dropped."""
    model = perceptron(bench)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in bench.turns():
        optimizer.zero_grad(set_to_none=bench.good)
        model(examples(bench)).square().mean().backward()
        optimizer.step()
    return optimizer


def anomaly_detection(bench: Bench) -> object:
    """A training step under `torch.autograd.detect_anomaly()`, or without."""
    model = perceptron(bench)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with contextlib.nullcontext() if bench.good else torch.autograd.set_detect_anomaly(True):
        for _ in bench.turns():
            optimizer.zero_grad()
            model(examples(bench)).square().mean().backward()
            optimizer.step()
    return optimizer
