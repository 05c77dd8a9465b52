"""Modules that are imported, and classes that are taken out of them, under names that the program makes."""

from __future__ import annotations

import pytest

from torchmemlint.flow.fact.cases import cases

NET = """
import torch
from torch import nn


class {name}(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.layer = nn.Linear(size, size)

    def forward(self, x):
        out = self.layer(x)
        return out, {second}
"""
TRAIN = """
import importlib

import torch
{imports}

def build(args):
    {body}


def train(args, loader):
    model = build(args)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0
    for x in loader:
        out, second = model(x)
        optimizer.zero_grad()
        out.mean().backward()
        optimizer.step()
        total = total + second
    print(float(total))
"""
WAYS = {
    "concatenated": 'return getattr(importlib.import_module("nets." + args.name), args.cls)()',
    "formatted": 'return getattr(importlib.import_module(f"nets.{args.name}"), args.cls)()',
    "with an ending": 'return getattr(importlib.import_module("nets." + args.name + "all"), args.cls)()',
    "in steps": """path = "nets." + args.name.lower()
    module = importlib.import_module(path)
    return getattr(module, args.name.title())()""",
    "relative": 'return getattr(importlib.import_module("." + args.name, "nets"), args.cls)()',
    "one module": 'return getattr(importlib.import_module("nets.small"), args.cls)()',
    "one class": 'return importlib.import_module("nets.small").Small()',
    "its variables": """for name, cls in importlib.import_module("nets." + args.name).__dict__.items():
        if name.lower() == args.cls:
            return cls()""",
    "a key of its variables": 'return importlib.import_module("nets." + args.name).__dict__[args.cls]()',
    "with a known ending of the class": (
        'return getattr(importlib.import_module("nets." + args.name), args.kind + "all")()'
    ),
}
FROM_A_PACKAGE = {
    "attribute": "return getattr(nets, args.cls)()",
    "key": "return nets.__dict__[args.cls]()",
}


def found(way: str, second: str, imports: str = "", gathers: str = "") -> list[tuple[str, bool]]:
    """The codes told in the training file, and whether each is certain: only the network says what it returns."""
    files = {
        "train.py": TRAIN.format(body=way, imports=imports),
        "nets/__init__.py": gathers,
        "nets/small.py": NET.format(name="Small", second=second),
    }
    return [(case.code, not case.doubts) for case in cases(files) if case.file == "train.py"]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_a_network_returns_is_known(way: str) -> None:
    assert ("TML101", True) in found(way, "out.mean()")
    assert found(way, "x.mean()") == []  # it has no graph: so it must be this network


@pytest.mark.parametrize("way", FROM_A_PACKAGE.values(), ids=FROM_A_PACKAGE)
def test_a_class_of_those_that_a_package_gathers(way: str) -> None:
    gathers = "from .small import Small"
    assert ("TML101", True) in found(way, "out.mean()", "import nets", gathers)
    assert found(way, "x.mean()", "import nets", gathers) == []


@pytest.mark.parametrize("way", [WAYS["concatenated"], WAYS["formatted"]])
def test_one_of_several(way: str) -> None:
    files = {
        "train.py": TRAIN.format(body=way, imports=""),
        "nets/small.py": NET.format(name="Small", second="x.mean()"),
        "nets/large.py": NET.format(name="Large", second="out.mean()"),
    }
    assert [case.code for case in cases(files) if case.file == "train.py"] == ["TML101"]


def test_too_many_are_any() -> None:
    files = {f"nets/net{n}.py": NET.format(name=f"Net{n}", second="x.mean()") for n in range(9)}
    files["train.py"] = TRAIN.format(body=WAYS["concatenated"], imports="")
    kept = [case for case in cases(files) if case.code == "TML101"]
    assert all(case.doubts for case in kept)  # a part of a result that was not seen


def test_what_is_no_part_of_the_package() -> None:
    files = {
        "train.py": TRAIN.format(body='return importlib.import_module("other." + args.name).Small()', imports=""),
        "nets/small.py": NET.format(name="Small", second="x.mean()"),
    }
    assert all(case.doubts for case in cases(files) if case.file == "train.py")
