"""Networks that are properties."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text

LOSSES = """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.net = nn.Linear(4, 4)
        self._wrapped = None
        self.optimizer = torch.optim.SGD(self.net.parameters())

    @property
    def model(self):
        if self._wrapped is None:
            self._wrapped = nn.DataParallel(self.net)
        return self._wrapped

    def train(self, loader):
        self.model.train()
        total = 0
        for x in loader:
            self.optimizer.zero_grad()
            loss = self.model(x).mean()
            loss.backward()
            self.optimizer.step()
            total += loss{end}
        return total

    def evaluate(self, loader):
        self.model.eval()
        {scope}
            return [self.model(x).argmax(-1).cpu() for x in loader]
"""


@pytest.mark.parametrize(
    ("end", "scope", "expected"),
    [
        ("", "with torch.no_grad():", ["TML101"]),
        (".item()", "if loader:", ["TML201"]),
        (".item()", "with torch.no_grad():", []),
    ],
)
def test_a_model_that_is_a_property_is_a_model_at_each_reading(end: str, scope: str, expected: list[str]) -> None:
    text = LOSSES.format(end=end, scope=scope)
    found = check_text(text, Path("trainer.py"), frozenset({"TML101", "TML201"}))
    assert [one.code for one in found] == expected
