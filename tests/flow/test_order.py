"""What is found in a file does not depend on which files were checked before it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from torchmemlint.engine.stack import deep
from torchmemlint.flow.names import importing
from torchmemlint.flow.project import Project

GATHERING = """\
import torch
from pack import other

def gather(model, loader):
    losses = []
    for x in loader:
        losses.append(model(x))
    return losses
"""
TRAINING = """\
import torch
from pack.gathering import gather

model = torch.nn.Linear(3, 3)
for epoch in range(9):
    print(len(gather(model, torch.ones(9, 3))))
"""
KEEPING = """\
import torch
import pack.gathering

model = torch.nn.Linear(3, 3)
kept = []
for _ in range(9):
    kept.append(model(torch.ones(3)))
"""
FILES = {
    "pack/__init__.py": "",
    "pack/gathering.py": GATHERING,
    "pack/other.py": "import torch\nfrom pack import gathering\nfrom testing import helper\n",
    "training.py": TRAINING,
    "testing/helper.py": TRAINING,
}
OPERATORS = """\
import torch

class Scaled:
    def __mul__(self, other):
        return other
"""
EPISODE = """\
import torch
from torch import nn

class Agent:
    def __init__(self):
        self.policy = nn.Linear(4, 2)
        self.optimizer = torch.optim.Adam(self.policy.parameters())

    def episode(self, env, horizon):
        state = env.reset()
        log_probs, rewards = [], []
        for _ in range(horizon):
            distribution = torch.distributions.Categorical(logits=self.policy(state))
            action = distribution.sample()
            state, reward, *_ = env.step(action.item())
            log_probs.append(distribution.log_prob(action))
            rewards.append(reward)
        loss = 0
        for log_prob, reward in zip(log_probs, rewards):
            loss = loss - log_prob * reward
        loss.backward()
        self.optimizer.step()
"""
CIRCLE = """\
import torch


def visit(model, x, depth, kept):
    if depth > 0:
        descend(model, x, depth, kept)


def descend(model, x, depth, kept):
    kept.append(model(x).mean())
    visit(model, x, depth - 1, kept)
"""
ONCE = """\
import torch
import circle


def once(x, depth):
    found = []
    circle.descend(torch.nn.Linear(3, 1), x, depth, found)
    found[0].backward()


once(torch.ones(3), 3)
"""
AGAIN = """\
import torch
import circle

model = torch.nn.Linear(3, 1)
kept = []
for x in torch.ones(9, 2, 3):
    circle.visit(model, x, len(x), kept)
print(float(sum(kept)))
"""
Told = dict[str, list[tuple[str, int, str]]]


def told(root: Path, order: Sequence[str]) -> Told:
    """What is found in files that are checked in this order."""
    project, found = Project(root), Told()
    for name in order:
        path = root / name
        cases = deep(partial(project.cases, path, path.read_text(encoding="utf-8"), None))
        found[name] = sorted((case.place.path.name, case.line, case.code) for case in cases)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("large", [1_000_000, 100], ids=["files", "a library"])
def test_any_order(root: Path, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_LARGE", large)
    names = ["pack/gathering.py", "training.py", "testing/helper.py"]
    first, *others = [told(root, order) for order in itertools.permutations(names)]
    assert all(other == first for other in others)
    assert first["pack/gathering.py"] == ([] if large == 100 else [("gathering.py", 7, "TML102")])


def test_what_lies_in_a_folder_of_tests_is_checked_whoever_has_read_it(root: Path) -> None:
    """It says nothing of the files that it imports."""
    (root / "training.py").unlink()
    (root / "testing" / "helper.py").write_text(KEEPING, encoding="utf-8")
    for is_read in (False, True):
        project = Project(root)
        if is_read:
            project.files.readable(root / "testing" / "helper.py")
        cases = project.cases(root / "testing" / "helper.py", project.text(root / "testing" / "helper.py") or "", None)
        assert [(case.line, case.code) for case in cases] == [(7, "TML102")]
        assert root / "testing" / "helper.py" not in project.runs.users(root / "pack" / "gathering.py")


def test_the_classes_of_files_that_have_nothing_to_do_with_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    (tmp_path / "operators.py").write_text(OPERATORS, encoding="utf-8")
    (tmp_path / "episode.py").write_text(EPISODE, encoding="utf-8")
    for order in (["episode.py", "operators.py"], ["operators.py", "episode.py"]):
        assert told(tmp_path, order) == {"episode.py": [], "operators.py": []}


def test_functions_that_call_each_other(tmp_path: Path) -> None:
    """What a function does is seen wherever the circle that it is a part of was entered first."""
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    for name, text in {"circle": CIRCLE, "once": ONCE, "again": AGAIN}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    names = ["once.py", "again.py", "circle.py"]
    first, *others = [told(tmp_path, order) for order in itertools.permutations(names)]
    assert all(other == first for other in others)
    assert first["again.py"]
