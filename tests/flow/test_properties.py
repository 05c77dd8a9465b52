"""Properties are walked once, unless what they rest on may have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text
from torchmemlint.flow import properties

TRAINER = """
import torch

class Trainer:
    def __init__(self, model, optimizer):
        self._model = model
        self._optimizer = optimizer
        self._wrapped = None

    @property
    def model(self):
        if self._wrapped is None:
            self._wrapped = wrap(self._model)
        return self._wrapped

    def swap(self, model):
        self._{attribute} = model

    def first(self, x, y):
        loss = self.model(x).sub(y).square().mean()
        {between}
        return loss + self.model(y).mean()

    def second(self, x):
        loss = self.model(x).mean() + self.model(x).sum()
        loss.backward()
        self._optimizer.step()
"""


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The properties that are walked."""
    seen: list[str] = []

    def result(it, callee, mode, walk):
        def seen_walk():
            seen.append(callee.function.name)
            return walk()

        return recall(it, callee, mode, seen_walk if properties.is_one(callee.function) else walk)

    recall = properties.result
    monkeypatch.setattr(properties, "result", result)
    return seen


def walked(text: str, walks: list[str]) -> int:
    walks.clear()
    check_text(text, Path("trainer.py"), frozenset({"TML101", "TML102"}))
    return len(walks)


def test_a_property_is_walked_again_where_its_attributes_were_assigned(walks: list[str]) -> None:
    once = walked(TRAINER.format(attribute="other", between="pass"), walks)
    assert 1 <= once <= 2  # before and after the backward
    assert walked(TRAINER.format(attribute="other", between="self.swap(x)"), walks) == once
    assert walked(TRAINER.format(attribute="model", between="self.swap(x)"), walks) > once
    assert walked(TRAINER.format(attribute="other", between="self._wrapped = None"), walks) > once


def test_a_property_that_computes_a_tensor_is_walked_at_each_reading(walks: list[str]) -> None:
    text = TRAINER.replace("return self._wrapped", "return self._model.weight.sum()").replace(
        "self.model(", "torch.abs(self.model * "
    )
    assert walked(text.format(attribute="other", between="pass"), walks) >= 2


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
