"""Frameworks: TML702."""

from __future__ import annotations

import torch

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import examples, perceptron


def predictions_on_device(bench: Bench) -> object:
    """Predictions for a whole evaluation set, gathered on the device as Trainer does, or moved off it."""
    model = perceptron(bench).eval()
    gathered = torch.empty(0, bench.size.width, device="cpu" if bench.good else bench.device)
    with torch.no_grad():
        for _ in bench.turns():
            hidden = model[:-1](examples(bench))
            gathered = torch.cat([gathered, hidden.cpu() if bench.good else hidden])
    return gathered
