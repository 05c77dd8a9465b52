"""A network of another file whose constructor freezes it, unless an argument says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.flow.project import Project

_NETWORK = """\
from torch import nn
from torchvision.models import resnet18


class Features(nn.Module):
    def __init__(self, blocks=3, {argument}):
        super().__init__()
        trunk = resnet18()
        self.blocks = nn.ModuleList()
        self.blocks.append(nn.Sequential(trunk.conv1, nn.MaxPool2d(3)))
        for parameter in self.parameters():
            {start}

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def build(options, metric):
    if metric == "distance":
        model = Features(2, **options)
    elif metric == "score":
        model = resnet18()
    return model
"""
_METRIC = """\
import torch
from networks import build


class Distance:
    def __init__(self, options):
        self.features = build(options, "distance")
        self.features.eval()

    def measure(self, loader):
        total = 0.0
        for images in loader:
            total += self.features(images).mean().item()
        return total
"""


@pytest.mark.parametrize(
    ("argument", "start", "expected"),
    [
        ("requires_grad=False", "parameter.requires_grad = requires_grad", 0),
        ("trained=False", "parameter.requires_grad_(trained)", 0),
        ("limit=1.0", "parameter.data.clamp_(-limit, limit)", 1),
    ],
)
def test_a_network_frozen_by_its_constructor_needs_no_guard(
    tmp_path: Path, argument: str, start: str, expected: int
) -> None:
    (tmp_path / "networks.py").write_text(_NETWORK.format(argument=argument, start=start))
    main = tmp_path / "metric.py"
    main.write_text(_METRIC)
    found = list(check_text(_METRIC, main, frozenset({"TML201"}), Project(tmp_path)))
    assert len(found) == expected, found
