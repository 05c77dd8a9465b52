"""The functions of a file are walked again only where something was found out after it had been asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.flow.analysis import analyse
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.syntax.source_module import SourceModule

STATE = """
import torch
from torch import nn

class Counter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell = nn.Linear(width, width)
        self.start = nn.Parameter(torch.zeros(width))
        self.state = {start}

    def forward(self, x):
        {update}
        return x

    def total(self):
        return {total}

def train(counter: Counter, batches):
    for x in batches:
        counter(x).sum().backward()
"""


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each pass."""
    begun: list[str] = []
    start = Interpreter.start_pass

    def counted(it: Interpreter) -> None:
        begun.append(it.main.source.path.name)
        start(it)

    monkeypatch.setattr(Interpreter, "start_pass", counted)
    return begun


def walk(text: str) -> None:
    analyse(SourceModule(text, Path("model.py")))


@pytest.mark.parametrize(
    ("start", "update", "total", "number"),
    [
        ("self.start * 2", "self.state = self.state + self.cell(x)", "0", 2),
        ("0.0", "self.state = self.cell(x)", "self.state.item()", 1),  # read by a walk that comes later
        ("0.0", "self.state = 1 + self.state", "self.state", 1),  # a number
    ],
)
def test_what_one_call_leaves_to_the_next(passes: list[str], start: str, update: str, total: str, number: int) -> None:
    walk(STATE.format(start=start, update=update, total=total))
    assert len(passes) == number


FREEZING = """
import torch
from torch import nn

class Tuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 8)

    def forward(self, x):
        return self.head(self.trunk(x))

    def freeze(self):
        for parameter in self.trunk.parameters():
            parameter.requires_grad = False

    def report(self, x):
        return self.trunk(x).detach()
"""


def test_what_methods_freeze_is_known_before_others_are_walked(passes: list[str]) -> None:
    walk(FREEZING)
    assert len(passes) == 1


def test_a_backward_that_proves_what_was_called_before(passes: list[str]) -> None:
    walk("def train(step, xs):\n    seen = []\n    for x in xs:\n        loss = step(x)\n        seen.append(loss)\n")
    assert len(passes) == 1
    walk(
        "import torch\n\ndef train(step, xs):\n    seen = []\n    for x in xs:\n        loss = step(x)\n"
        "        loss.backward()\n        seen.append(loss)\n"
    )
    assert len(passes) == 3


def test_a_container_that_hooks_fill(passes: list[str]) -> None:
    walk(
        "from functools import partial\n\n"
        "def watch(model, x):\n    bank = []\n    model.register_forward_hook(partial(keep, bank))\n    model(x)\n"
        "    return [value.item() for value in bank]\n\n"
        "def keep(bank, module, inputs, output):\n    bank.append(output)\n"
    )
    assert len(passes) == 2
