"""A project that differentiates by itself is no business of ours, however much its training loops look like torch's."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import Check
from torchmemlint.flow.project import Project

TENSOR = """import numpy as np

class Tensor{bases}:
    def __init__(self, data, inputs=()):
        self.data, self.inputs = np.asarray(data), inputs

    def {method}(self):
        for tensor, gradient in self.inputs:
            tensor.grad = gradient
"""

TRAIN = """import numpy as np
{imports}
from torch.utils.data import DataLoader

class Net:
    def __init__(self):
        self.weight = Tensor(np.random.rand(784, 10))

    def parameters(self):
        return [self.weight]

    def __call__(self, x):
        return squashed(x @ self.weight)

model = Net()
optimizer = SGD(model.parameters(), lr=0.1)
for images, labels in DataLoader(read("train")):
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
for images, labels in DataLoader(read("test")):
    predicted = model(images)
    print(predicted.data.argmax(-1))
"""

OWN = "import mytorch.nn as nn\nfrom mytorch import SGD, Tensor, criterion, squashed"


def is_passed_over(root: Path, imports: str, *, bases: str = "", method: str = "backward") -> bool:
    (root / "mytorch").mkdir()
    (root / "mytorch" / "__init__.py").write_text("from .tensor import Tensor\n", encoding="utf-8")
    (root / "mytorch" / "tensor.py").write_text(TENSOR.format(bases=bases, method=method), encoding="utf-8")
    path = root / "train.py"
    path.write_text(TRAIN.format(imports=imports), encoding="utf-8")
    return Check(path.read_text(encoding="utf-8"), path, Project(root)).facts.program.is_of_another_framework


@pytest.mark.parametrize("imports", [OWN, "import mytorch", "from mytorch.optim import SGD"])
def test_its_own_tensors_are_passed_over(imports: str, tmp_path: Path) -> None:
    assert is_passed_over(tmp_path, imports)


@pytest.mark.parametrize(
    ("imports", "bases", "method"),
    [
        (OWN, "(np.ndarray)", "backward"),  # what it inherits is not in view
        (OWN, "", "smooth"),
        (f"{OWN}\nimport torch", "", "backward"),
        (f"{OWN}\nfrom torch import nn", "", "backward"),
    ],
)
def test_others_are_not(imports: str, bases: str, method: str, tmp_path: Path) -> None:
    assert not is_passed_over(tmp_path, imports, bases=bases, method=method)
