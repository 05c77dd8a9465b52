"""Code that names torch is looked at; strings and comments that speak of it make no file one of torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.config.contracts import Framework
from torchmemlint.engine.checking import Check, check_text
from torchmemlint.flow.program import Program
from torchmemlint.flow.revising import TooMuch
from torchmemlint.knowledge.contracts import contracts
from torchmemlint.syntax.source_module import SourceModule

_SUM = """\
def evaluate(model, loader):
    model.eval()
    total = 0.0
    for x in loader:
        total += model(x).mean().item()
    return total
"""


def names_torch(text: str, *additions: Framework) -> bool:
    return Program(SourceModule(text, Path("main.py")), None, contracts(additions)).names_torch


@pytest.mark.parametrize(
    "line",
    [
        "import torch",
        "import torchvision.models",
        "from torch.utils import data",
        "import numpy as np, torch as th",
        "from helpers import torch_device",
        "from lightning.pytorch import Trainer",
        "from accelerate import Accelerator",
        "if helpers.is_torch_available():\n    pass",
        "def step(loss):\n    loss.backward()",
        "class Net:\n    def half(self):\n        return self.cast('torch', to=torch.half)",
    ],
)
def test_named(line: str) -> None:
    assert names_torch(f"{line}\n")
    assert [one.code for one in check_text(f"{line}\n\n\n{_SUM}", Path("main.py"), frozenset({"TML201"}))] == ["TML201"]


@pytest.mark.parametrize(
    "line",
    [
        "# torch is not needed here",
        '"""What torch.save has written."""',
        "BACKEND = 'torch'",
        "COMMANDS = ['pip install torch', \"loss.backward()\"]",
        "print(f'needs torch {version}')",
        "import numpy as np",
    ],
)
def test_not_named(line: str) -> None:
    assert not names_torch(f"{line}\n")
    assert check_text(f"{line}\n\n\n{_SUM}", Path("main.py"), frozenset({"TML201"})) == []


def test_frameworks_that_the_configuration_adds() -> None:
    acme = Framework("acme", names=(("packages", ("acme.train",)),))
    assert not names_torch("from acme import train\n")
    assert names_torch("from acme import train\n", acme)
    assert not names_torch("x = 'acme'\n", acme)


def test_an_edit_that_names_it_first() -> None:
    check = Check(f"# torch\n\n\n{_SUM}", Path("main.py"))
    with pytest.raises(TooMuch):
        check.revise(f"# torch\nimport torch\n\n{_SUM}", lambda: None)
