"""Models whose forward pass differentiates somewhere behind it: their evaluation needs gradients."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text
from torchmemlint.flow.project import Project

WRONG = pytest.mark.xfail(
    strict=True, reason="a part of a network that is given from outside is not taken to differentiate when it runs"
)

DERIVED = """
import torch


def derive(energy, positions):
    return torch.autograd.grad([energy], [positions], create_graph=True)[0]
"""

PENALTY = """
import torch


def derive(critic, mixed):
    return torch.autograd.grad([critic(mixed).sum()], [mixed], create_graph=True)[0]
"""

PLAIN = """
def derive(energy, positions):
    return energy - positions
"""

ATTACK = """
import torch


class Attack:
    def __init__(self, model):
        self.model = model

    def forward(self, images):
        images.requires_grad = True
        return images + torch.autograd.grad(self.model(images).sum(), images)[0]


def derive(energy, positions):
    return energy - positions
"""

MODEL = """
import torch

from potential.outputs import derive


def complete(found, positions):
    return {**found, "slope": derive(found["energy"], positions)}


def make(network):
    class Potential(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def common(self, positions):
            return complete({"energy": self.network(positions)}, positions)

        def forward(self, positions):
            return self.common(positions)

    return Potential()
"""

WRAPPER = """
import torch


class Wrapper(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = torch.nn.ModuleDict()
        if isinstance(model, dict):
            for name in model:
                self.model[name] = model[name]
        else:
            self.model["default"] = model
        self.scale = torch.nn.Linear(8, 1)

    def forward(self, positions, labels, name="default"):
        found = self.model[name](positions)
        return torch.nn.functional.mse_loss(self.scale(found["energy"]), labels)
"""

RUN = """
import torch
from potential.wrapper import Wrapper


class Trainer:
    def __init__(self, model, loader):
        self.wrapper = Wrapper(model).cuda()
        self.optimizer = torch.optim.Adam(self.wrapper.parameters())
        self.loader = loader

    def train(self):
        self.wrapper.train()
        for positions, labels in self.loader:
            self.optimizer.zero_grad()
            self.wrapper(positions.cuda(), labels.cuda()).backward()
            self.optimizer.step()
        return self.validate()

    def validate(self):
        self.wrapper.eval()
        total = 0.0
        for positions, labels in self.loader:
            total += self.wrapper(positions.cuda(), labels.cuda()).item()
        return total / len(self.loader)
"""


def evaluations(root: Path, outputs: str) -> list[int]:
    package = root / "potential"
    package.mkdir()
    files = {"__init__.py": "", "outputs.py": outputs, "model.py": MODEL, "wrapper.py": WRAPPER, "run.py": RUN}
    for name, text in files.items():
        (package / name).write_text(text, encoding="utf-8")
    found = check_text(RUN, package / "run.py", frozenset({"TML201"}), Project(root))
    return [finding.span.start.row for finding in found]


@WRONG
def test_a_wrapped_model_that_differentiates_behind_three_files_needs_gradients(tmp_path: Path) -> None:
    assert evaluations(tmp_path, DERIVED) == []


@pytest.mark.parametrize("outputs", [PLAIN, PENALTY, ATTACK])
def test_one_that_does_not_is_evaluated_for_nothing(tmp_path: Path, outputs: str) -> None:
    assert evaluations(tmp_path, outputs) == [24]


NETWORK = """
import torch


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def outputs(self, x):
        x.requires_grad_(True)
        distance = self.layer(x)
        return distance, torch.autograd.grad(distance.sum(), x, create_graph=True)[0]

    def forward(self, x):
        return self.outputs(x)
"""
EVALUATION = """
import torch
import utils


def evaluate(options, loader):
    model = utils.class_of(options["model"])()
    model.cuda()
    model.eval()
    images = []
    for positions in loader:
        images.append(model(positions.cuda())[0].detach().cpu())
    return images
"""


@pytest.mark.parametrize(("network", "expected"), [(NETWORK, []), (NETWORK.replace("autograd.grad", "add"), [12])])
def test_a_class_named_in_a_configuration_may_be_of_the_folder_beside(
    tmp_path: Path, network: str, expected: list[int]
) -> None:
    for name, text in {"model/network.py": network, "evaluation/run.py": EVALUATION}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = tmp_path / "evaluation" / "run.py"
    found = check_text(EVALUATION, path, frozenset({"TML201"}), Project(tmp_path))
    assert [finding.span.start.row for finding in found] == expected
