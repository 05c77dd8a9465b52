"""A module that only its treatment shows to be one, and that another file makes of buffers alone, builds no graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text
from torchmemlint.flow.project import Project

AGENT = """
import torch


class Agent:
    def prepare(self, batch):
        self.normalizer.train()
        self.normalizer(batch["values"])
        self.normalizer.eval()
        values = self.normalizer(batch["values"])
        return values.mean().item()
"""

MODEL = """
import torch
from torch import nn


class Statistics(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.register_buffer("mean", torch.zeros(size))
        {layer}

    def forward(self, x):
        return x - self.mean


class Model(nn.Module):
    def __init__(self, size, given=None):
        super().__init__()
        self.normalizer = {value}
"""


def codes(root: Path, value: str, layer: str = "", more: str = "") -> list[str]:
    (root / "agent.py").write_text(AGENT, encoding="utf-8")
    (root / "model.py").write_text(MODEL.format(value=value, layer=layer) + more, encoding="utf-8")
    found = check_text(AGENT, root / "agent.py", frozenset({"TML201"}), Project(root))
    return [finding.code for finding in found]


@pytest.mark.parametrize(
    "value",
    [
        "Statistics(size)",
        "torch.jit.script(Statistics((size,)))",
        "Statistics(size) if size else None",
        "nn.Identity()",
    ],
)
def test_is_not_reported(tmp_path: Path, value: str) -> None:
    assert codes(tmp_path, value) == []


def test_attributes_that_hand_it_on_say_nothing(tmp_path: Path) -> None:
    more = "\n\ndef share(agent, model):\n    agent.normalizer = model.normalizer if model else None\n"
    assert codes(tmp_path, "Statistics(size)", more=more) == []


@pytest.mark.parametrize(
    ("value", "layer", "more"),
    [
        ("nn.Linear(size, size)", "", ""),
        ("given", "", ""),
        ("make(size)", "", ""),
        ("Statistics(size)", "self.scale = nn.Parameter(torch.ones(size))", ""),
        ("Statistics(size)", "self.layer = nn.Linear(size, size)", ""),
        ("Statistics(size) if size else nn.Linear(3, 3)", "", ""),
        ("Statistics(size)", "", "\n\ndef change(model):\n    model.normalizer = nn.BatchNorm1d(8)\n"),
    ],
)
def test_is_reported(tmp_path: Path, value: str, layer: str, more: str) -> None:
    assert codes(tmp_path, value, layer, more) == ["TML201"]


def test_too_many_files_are_not_read(tmp_path: Path) -> None:
    for number in range(13):
        (tmp_path / f"other{number}.py").write_text("agent.normalizer = None\n", encoding="utf-8")
    assert codes(tmp_path, "Statistics(size)") == ["TML201"]
