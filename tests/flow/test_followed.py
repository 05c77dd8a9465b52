"""Which calls a walk follows: of layers that layers run, only those that do not merely compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from torchmemlint.flow import calls
from torchmemlint.flow.analysis import analysis
from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.project import Project
from torchmemlint.flow.values import FunctionValue, Mode, Value
from torchmemlint.syntax.source_module import SourceModule

_LAYERS = """\
import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        y = self.fc(x)
        return {inner}


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return torch.relu(self.inner(x))
"""
_TRAIN = """

def train(loader):
    model = Outer()
    for x in loader:
        model(x).sum().backward()
"""


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Path], set[str]]:
    """The functions that were followed from a file's text, at its path."""
    names: set[str] = set()
    walk = calls.walk

    def noted(
        it: Interpreter,
        node: cst.CSTNode,
        callee: FunctionValue,
        bound: dict[str, Value],
        mode: Mode,
        given: Arguments | None = None,
    ) -> Value:
        names.add(callee.function.qualname)
        return walk(it, node, callee, bound, mode, given)

    monkeypatch.setattr(calls, "walk", noted)

    def of(text: str, path: Path) -> set[str]:
        names.clear()
        analysis(SourceModule(text, path), Project(path.parent))
        return {name for name in names if not name.endswith("__init__")}

    return of


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("x + y", False),
        ("y.view(-1), x", False),
        ("y.detach()", True),
        ("y.argmax(-1)", True),
        ("torch.arange(len(y))", True),
    ],
)
def test_what_layers_run_of_layers(
    followed: Callable[[str, Path], set[str]], tmp_path: Path, inner: str, expected: bool
) -> None:
    text = _LAYERS.format(inner=inner)
    found = {"Inner.forward"} if expected else set()
    assert followed(text, tmp_path / "layers.py") == found
    assert followed(text + _TRAIN, tmp_path / "train.py") == {"Outer.forward", *found}
