"""A tensor that is returned after it was differentiated, and what callers in other files do with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text
from torchmemlint.findings import Applicability, Finding
from torchmemlint.fixes.apply import fix_text
from torchmemlint.flow.project import Project

STEP = """
import torch
from torch import nn


def step(model: nn.Module, batch, optimizer):
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
"""

GRADIENT = """
from torch.autograd import grad


def advance(state, potential, size):
    for _ in range(size):
        gradients, energy = _gradients(potential, state)
        state = state - gradients
    return state, energy


def _gradients(potential, state):
    state.requires_grad_(True)
    energy = potential(state)
    (gradients,) = grad(energy, [state])
    state.requires_grad_(False)
    return gradients, energy
"""

RUNNER = """
from step import step


class Runner:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.last = None

    def remember(self, loss, index):
        self.last = loss

    def run(self, loader):
        for index, batch in enumerate(loader):
            BODY
"""

SAMPLER = """
from gradient import advance


class Sampler:
    def sample(self):
        state, energy = advance(self.state, self.potential, 4)
        self._cache(state, energy)

    def _cache(self, state, energy):
        self.state = state
        self.energy = energy
"""

CALL = "step(self.model, batch, self.optimizer)"
KEEPING = {
    "stored": f"loss = {CALL}; self.last = loss",
    "handed to a method that stores it": f"loss = {CALL}; self.remember(loss, index)",
}
NOT_KEEPING = {
    "read": f"loss = {CALL}; print(loss.item())",
    "stored as a number": f"loss = {CALL}; self.last = loss.item()",
    "detached under its own name": f"loss = {CALL}; loss = loss.detach(); self.last = loss",
    "another value is stored": f"loss = {CALL}; self.last = index",
    "unpacked": f"loss, extra = {CALL}; self.last = loss",
    "another argument is kept": f"loss = {CALL}; self.remember(index, loss)",
}


def check(root: Path, name: str, files: dict[str, str]) -> list[Finding]:
    for path, text in files.items():
        (root / path).write_text(text, encoding="utf-8")
    return check_text(files[name], root / name, frozenset({"TML103"}), Project(root))


def runner(body: str) -> str:
    return RUNNER.replace("BODY", body)


@pytest.mark.parametrize("body", KEEPING.values(), ids=KEEPING)
def test_a_spent_graph_that_a_caller_keeps_is_reported_where_it_is_returned(tmp_path: Path, body: str) -> None:
    (finding,) = check(tmp_path, "step.py", {"step.py": STEP, "runner.py": runner(body)})

    assert finding.span.start.row == 11
    assert "keeps it in `self.last`" in finding.message
    assert [link.span.start.row for link in finding.evidence][-2:] == [9, 11]
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    fixed = fix_text(STEP, [finding], lambda text: check(tmp_path, "step.py", {"step.py": text}), unsafe=False)
    assert "return loss.detach()" in fixed.text


@pytest.mark.parametrize("body", NOT_KEEPING.values(), ids=NOT_KEEPING)
def test_a_caller_that_does_not_keep_it_costs_nothing(tmp_path: Path, body: str) -> None:
    assert check(tmp_path, "step.py", {"step.py": STEP, "runner.py": runner(body)}) == []


def test_nobody_calls_it(tmp_path: Path) -> None:
    assert check(tmp_path, "step.py", {"step.py": STEP}) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss.backward()", "loss.backward(retain_graph=True)"),
        ("loss.backward()", "if batch.sum() > 0:\n        loss.backward()"),
        ("loss.backward()", "(loss / 4).backward()"),
        ("return loss", "return loss.detach()"),
        ("    loss.backward()\n", ""),
    ],
)
def test_what_may_be_differentiated_again_is_left_alone(tmp_path: Path, old: str, new: str) -> None:
    changed = STEP.replace(old, new)
    assert changed != STEP

    assert check(tmp_path, "step.py", {"step.py": changed, "runner.py": runner(KEEPING["stored"])}) == []


def test_a_result_is_followed_through_functions_that_hand_it_on(tmp_path: Path) -> None:
    (finding,) = check(tmp_path, "gradient.py", {"gradient.py": GRADIENT, "sampler.py": SAMPLER})

    assert finding.message.startswith("`_gradients` returns `energy`")
    assert finding.message.endswith("`Sampler._cache` keeps it in `self.energy`")


def test_the_other_element_that_is_handed_on_is_not_taken_for_it(tmp_path: Path) -> None:
    sampler = SAMPLER.replace("self.energy = energy", "print(energy)")

    assert check(tmp_path, "gradient.py", {"gradient.py": GRADIENT, "sampler.py": sampler}) == []
