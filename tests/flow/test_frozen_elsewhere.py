"""A network of another file whose constructor freezes it, unless an argument says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text
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


_UNKNOWN_FLAG = pytest.mark.xfail(reason="the options may hold the flag, and no doubt says so", strict=True)


@pytest.mark.parametrize(
    ("argument", "start", "expected"),
    [
        pytest.param("requires_grad=False", "parameter.requires_grad = requires_grad", 0, marks=_UNKNOWN_FLAG),
        pytest.param("trained=False", "parameter.requires_grad_(trained)", 0, marks=_UNKNOWN_FLAG),
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


_PARTS = """\
from itertools import chain

from torch import nn
from torchvision import models


class Trunk(nn.Module):
    def set_requires_grad(self, state):
        for parameter in chain(self.parameters(), self.buffers()):
            parameter.requires_grad = state

    def forward(self, x):
        return [layer(x) for layer in self.layers]


class Small(Trunk):
    def __init__(self):
        super().__init__()
        self.layers = models.alexnet().features
        self.set_requires_grad(False)


class Large(Trunk):
    def __init__(self):
        super().__init__()
        self.layers = models.vgg16().features
        self.set_requires_grad(False)


class Weights(nn.ModuleList):
    def __init__(self, channels):
        super().__init__([nn.Conv2d(width, 1, 1) for width in channels])
        self.requires_grad_(False)


def choose(kind):
    if kind == "small":
        return Small()
    return Large()
"""
_WHOLE = """\
import torch
from torch import nn
from parts import Weights, choose


class Perceptual(nn.Module):
    def __init__(self, kind="small"):
        super().__init__()
        self.net = choose(kind).to("cuda")
        self.weights = Weights([64, 192]).to("cuda")

    def forward(self, x, y):
        differences = [(a - b) ** 2 for a, b in zip(self.net(x), self.net(y))]
        parts = [weigh(one).mean((2, 3), True) for one, weigh in zip(differences, self.weights)]
        return torch.sum(torch.cat(parts, 0)) / x.shape[0]
"""
_SCORES = """\
from torch.utils.data import DataLoader
from whole import Perceptual


def scores(pairs, kind):
    loader = DataLoader(pairs)
    distance = Perceptual(kind)
    distance.cuda()
    found = []
    for made, wanted in loader:
        found.append(float(distance(made.cuda(), wanted.cuda())))
    return found
"""


WRONG = pytest.mark.xfail(strict=True, reason="which of two frozen networks a function returns is not followed")


@pytest.mark.parametrize(("frozen", "expected"), [pytest.param(True, 0, marks=WRONG), (False, 1)])
def test_a_network_made_of_frozen_ones_that_a_function_chooses_needs_no_guard(
    tmp_path: Path, frozen: bool, expected: int
) -> None:
    parts = _PARTS if frozen else _PARTS.replace("self.set_requires_grad(False)", "print(self)")
    (tmp_path / "parts.py").write_text(parts)
    (tmp_path / "whole.py").write_text(_WHOLE)
    main = tmp_path / "scores.py"
    main.write_text(_SCORES)
    found = list(check_text(_SCORES, main, frozenset({"TML201"}), Project(tmp_path)))
    assert len(found) == expected, found


_BASE = """\
from torch import nn


class Base(nn.Module):
    def settle(self):
        {settle}
"""
_DERIVED = """\
from torch import nn
from base import Base


class Features(Base):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Conv2d(64, 64, 3))
        self.settle()

    def forward(self, x):
        return self.layers(x)


class Distance:
    def __init__(self):
        self.features = Features()
        self.features.eval()

    def measure(self, loader):
        total = 0.0
        for images in loader:
            total += self.features(images).mean().item()
        return total
"""


@pytest.mark.parametrize(("settle", "expected"), [("self.requires_grad_(False)", 0), ("self.count = 1", 1)])
def test_a_constructor_may_freeze_by_a_method_of_a_base_elsewhere(tmp_path: Path, settle: str, expected: int) -> None:
    (tmp_path / "base.py").write_text(_BASE.format(settle=settle))
    main = tmp_path / "metric.py"
    main.write_text(_DERIVED)
    found = list(check_text(_DERIVED, main, frozenset({"TML201"}), Project(tmp_path)))
    assert len(found) == expected, found
