"""Where gradients are turned off: around the one pass, where the function also gives what trains."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.fixes.apply import fix_text

CODES = frozenset({"TML201"})
NETWORKS = """
import torch
from torch import nn


class Distillation:
    def __init__(self, device):
        self.predictor = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 8)).to(device)
        self.target = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 8)).to(device)
        self.target.eval()
"""
GIVES_A_LOSS = """
    def loss(self, states):
        predicted = self.predictor(states)
        embedded = self.target(states).detach()
        return nn.functional.mse_loss(predicted, embedded)
"""
GIVES_NUMBERS = """
    def distance(self, states):
        embedded = self.target(states)
        return embedded.norm(dim=1).mean().item()
"""

EXPLAINS = """
    def explained(self, states):
        from explaining import Explainer
        mask = Explainer(self.target)(states)
        return self.target(states).norm(dim=1).mean().item(), mask
"""
DIFFERENTIATES = """
    def slope(self, states):
        value = self.target(states).norm(dim=1).mean().item()
        energy = self.predictor(states).sum()
        return value, torch.autograd.grad(energy, self.predictor[0].weight)
"""
KEEPS_WHAT_IS_READ = """
    def distance(self, states):
        self.hidden = self.predictor(states)
        return self.target(states).norm(dim=1).mean().item()

    def last(self):
        return self.hidden
"""


def fixed(text: str) -> str:
    def check(changed: str):  # type: ignore[no-untyped-def]
        return check_text(changed, Path("rnd.py"), CODES)

    return fix_text(text, check(text), check, unsafe=True).text


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        (GIVES_A_LOSS, "        with torch.no_grad():\n            embedded = self.target(states)\n"),
        (GIVES_NUMBERS, "    @torch.no_grad()\n    def distance(self, states):\n"),
        (DIFFERENTIATES, "        with torch.no_grad():\n            value = self.target(states).norm("),
    ],
)
def test_where(method: str, wanted: str) -> None:
    text = dedent(NETWORKS) + method
    found = fixed(text)
    assert wanted in found
    assert found.count("no_grad") == 1


@pytest.mark.parametrize("method", [EXPLAINS, KEEPS_WHAT_IS_READ])
def test_what_is_done_beside_it_goes_on(method: str) -> None:
    text = dedent(NETWORKS) + method
    (found,) = check_text(text, Path("rnd.py"), CODES)
    assert found.fix is not None
    assert found.fix.message == "Wrap in `torch.no_grad()`"
    assert "@torch.no_grad()" not in fixed(text)
