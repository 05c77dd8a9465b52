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


def fixed(text: str) -> str:
    def check(changed: str):  # type: ignore[no-untyped-def]
        return check_text(changed, Path("rnd.py"), CODES)

    return fix_text(text, check(text), check, unsafe=True).text


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        (GIVES_A_LOSS, "        with torch.no_grad():\n            embedded = self.target(states).detach()\n"),
        (GIVES_NUMBERS, "    @torch.no_grad()\n    def distance(self, states):\n"),
    ],
)
def test_where(method: str, wanted: str) -> None:
    text = dedent(NETWORKS) + method
    found = fixed(text)
    assert wanted in found
    assert found.count("no_grad") == 1
