"""A network may carry a state, with its graph, from one iteration into the next: then `retain_graph=True` is needed."""

from __future__ import annotations

import pytest

from torchmemlint.doubts import Confidence, Doubt

from .findings import cases

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.state = nn.GRU(4, 4), None

    def forward(self, x):
        {forward}
        return y
"""
STEP = "loss = net(x).sum()\n{indent}loss.backward(retain_graph=True)\n{indent}opt.step()\n"
LOOP = "\n\ndef train(net, data, opt):\n    for x in data:\n        " + STEP.format(indent=" " * 8)
ONCE = "\n\ndef train(net, x, opt):\n    " + STEP.format(indent=" " * 4)
OWN = "\n\ndef main(data, opt):\n    train(Net(), data, opt)\n"
CARRIED, APART = "y, self.state = self.layer(x, self.state)", "y, _ = self.layer(x)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch" + LOOP, [("TML105", Confidence.LIKELY, {Doubt.STATE})]),
        ("import torch" + ONCE, [("TML105", Confidence.CERTAIN, set())]),
        (NET.format(forward=APART) + LOOP + OWN, [("TML105", Confidence.CERTAIN, set())]),
        (NET.format(forward=CARRIED) + LOOP + OWN, [("TML104", Confidence.CERTAIN, set())]),
    ],
)
def test_what_is_not_seen_may_carry_one(text: str, expected: list[tuple[str, Confidence, set[Doubt]]]) -> None:
    assert [(case.code, case.confidence, set(case.doubts)) for case in cases({"main.py": text})] == expected
