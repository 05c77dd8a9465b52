"""What makes temporaries, and what takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import While
from torchmemlint.flow.ir.defuse import DefUse, operands
from torchmemlint.flow.ir.lower import lower
from torchmemlint.flow.ir.ops import Call, GetAttribute

from .verifying import read

FILES = sorted((Path(__file__).parents[3] / "fixtures").glob("TML1*/bad_*.py"))


@pytest.mark.parametrize("path", FILES[::7], ids=lambda path: path.stem)
def test_operands_of_all_operations(path: Path) -> None:
    for function in lower(path.read_text(), "main").functions:
        for op in operations(function.body):
            tests = {op.test} if isinstance(op, While) else set[int]()
            assert {*operands(op)} == {*read(op)} | tests, op


def test_what_follows_and_names() -> None:
    module = lower("import torch.nn as n\nx = n.init.f(y.data[0])\ng(y.data)\ny.data\n", "main").module
    flow = DefUse(module)
    first, second, third = (op for op in operations(module.body) if isinstance(op, GetAttribute) and op.name == "data")
    assert [type(op).__name__ for op in flow.following(first)] == ["GetItem"]
    (call,) = flow.following(second)
    assert isinstance(call, Call)
    assert flow.name(call.callee) == "g"  # a builtin, as far as the file shows
    assert flow.following(third) == []
    (init,) = (op for op in operations(module.body) if isinstance(op, GetAttribute) and op.name == "init")
    assert flow.name(init.dst) == "torch.nn.init"
