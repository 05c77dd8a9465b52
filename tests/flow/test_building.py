"""What a constructor calls of its base class in another file: followed where it has a say in the module."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.flow.analysis import analysis
from torchmemlint.flow.building import has_a_say
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import Function, Program
from torchmemlint.flow.project import Project
from torchmemlint.syntax.source_module import SourceModule

_BASE = """\
import torch
from torch import nn


class Base(nn.Module):
    def settle(self):
        self.names = set(self.names or [])
        for name, child in self.named_children():
            self.names.update(getattr(child, "names", ()))

    def freeze(self):
        for parameter in self.parameters():
            parameter.requires_grad = False

    def add_head(self):
        self.head = nn.Linear(4, 4)

    def width(self):
        return self.options.width

    def run_own(self):
        self.prepare()

    def prepare(self):
        self.ready = True
"""
_MAIN = """\
import torch
from torch import nn

from base import Base


class Net(Base):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.{method}()
{more}
    def forward(self, x):
        return self.body(x)


def evaluate(loader):
    net = Net()
    net.eval()
    return sum(net(x).mean().item() for x in loader)
"""
_PREPARE = "\n    def prepare(self):\n        self.body.requires_grad_(False)\n"


@pytest.mark.parametrize(
    ("method", "more", "expected"),
    [
        ("settle", "", False),
        ("freeze", "", True),
        ("add_head", "", True),
        ("width", "", True),
        ("run_own", "", False),
        ("run_own", _PREPARE, True),
    ],
)
def test_what_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, more: str, expected: bool
) -> None:
    (tmp_path / "base.py").write_text(_BASE)
    main = tmp_path / "main.py"
    main.write_text(_MAIN.format(method=method, more=more))
    walked: set[str] = set()
    wants = Interpreter.wants

    def noted(it: Interpreter, function: Function) -> bool:
        found = wants(it, function)
        walked.update([function.qualname] if found else [])
        return found

    monkeypatch.setattr(Interpreter, "wants", noted)
    analysis(SourceModule(main.read_text(), main), Project(tmp_path))
    assert (f"Base.{method}" in walked) is expected


def test_a_constructor_has_a_say() -> None:
    program = Program(SourceModule("class Meter:\n    def __init__(self):\n        self.sum = 0\n", Path("meters.py")))
    cls = program.find_class("Meter")
    assert cls is not None
    assert has_a_say(cls.methods["__init__"], program)
