"""A fix that detaches what is stored is not safe where the same function returns what it has stored."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Applicability

PROGRAM = """
import torch
from torch import nn


class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)
        self.last = None

    def forward(self, x):
        {stores}
        {returns}


net, head = Keeping(), nn.Linear(512, 1)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(3):
    features = net(torch.randn(64, 512)).detach()
    loss = head(features).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(float(net.last.sum()))
"""
LAST = "self.last = self.layer(x)"


def applicability(stores: str, returns: str) -> list[Applicability]:
    text = dedent(PROGRAM).format(stores=stores, returns=returns)
    found = check_text(text, Path("a.py"), frozenset({"TML103"}))
    return [finding.fix.applicability for finding in found if finding.fix is not None]


@pytest.mark.parametrize(
    ("stores", "returns"),
    [
        (LAST, "return self.last.sigmoid()"),
        (LAST, "out = self.last.sigmoid(); return out"),
        (LAST, "return x, self.last"),
    ],
)
def test_what_is_returned_again(stores: str, returns: str) -> None:
    assert applicability(stores, returns) == [Applicability.UNSAFE]


def test_what_is_only_stored() -> None:
    assert applicability(f"out = self.layer(x); {LAST[:12]}out", "return out") == [Applicability.SAFE]
