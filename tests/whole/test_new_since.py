"""`--new-since` where no row of the finding changed: what kept it away is gone, or another file makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .repository import Repository, findings

METER = """class Meter:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append({value})
"""
TRAIN = """import torch
from tools.meter import Meter


def train(model, loader, optimizer):
    meter = Meter()
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss)
"""

VALIDATE = """import torch


@torch.no_grad()
def validate(model: torch.nn.Module, loader):
    model.eval()
    outputs = []
    for x in loader:
        outputs.append(model(x))
    return outputs


def train(model: torch.nn.Module, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        total += loss
    return total
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.chdir(tmp_path)
    return Repository(tmp_path)


def new() -> list[tuple[str, str]]:
    found = findings("--isolated", "--no-cache", "--new-since=HEAD")
    return [(Path(one["filename"]).name, one["code"]) for one in found]


def test_a_deleted_row_that_kept_it_away(repository: Repository) -> None:
    repository.write("a.py", VALIDATE)
    repository.commit()
    assert findings("--isolated", "--no-cache") == []
    repository.write("a.py", VALIDATE.replace("@torch.no_grad()\n", ""))
    assert new() == [("a.py", "TML201")]
    repository.write("a.py", VALIDATE.replace("        loss = loss.detach()\n", ""))
    assert new() == [("a.py", "TML101")]
    repository.commit()
    repository.write("a.py", "\n" + VALIDATE.replace("        loss = loss.detach()\n", ""))
    assert new() == []


def test_evidence_in_another_file(repository: Repository) -> None:
    repository.write("tools/meter.py", METER.format(value="value.item()"))
    repository.write("train.py", TRAIN)
    repository.commit()
    assert findings("--isolated", "--no-cache") == []
    repository.write("tools/meter.py", METER.format(value="value"))
    assert new() == [("train.py", "TML102")]
    repository.commit()
    repository.write(
        "tools/meter.py", METER.format(value="value") + "\n    def clear(self):\n        self.values = []\n"
    )
    assert new() == []
    repository.git("rm", "-q", "--cached", "tools/meter.py")  # now it is one that git does not know
    assert new() == [("train.py", "TML102")]
