"""The training step: TML601 to TML605."""

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


def kept_result(bench: Bench) -> object:
    """A pass without gradients whose results are as large as its activations, each bound until the next is there."""
    model = perceptron(bench)[:-1].eval()
    total = 0.0
    with torch.no_grad():
        for _ in bench.turns():
            found = model(examples(bench))
            total += float(found.mean())
            if bench.good:
                del found
    return total


def full_precision(bench: Bench) -> object:
    """A training in float32, or under autocast in bfloat16."""
    model = perceptron(bench)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in bench.turns():
        optimizer.zero_grad()
        with torch.autocast(bench.device.type, dtype=torch.bfloat16, enabled=bench.good):
            loss = model(examples(bench)).float().square().mean()
        loss.backward()
        optimizer.step()
    return optimizer


def optimizer_state(bench: Bench) -> object:
    """A training with AdamW, or with SGD and momentum."""
    model = perceptron(bench)
    optimizer: torch.optim.Optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    if bench.good:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in bench.turns():
        optimizer.zero_grad()
        model(examples(bench)).square().mean().backward()
        optimizer.step()
    return optimizer
