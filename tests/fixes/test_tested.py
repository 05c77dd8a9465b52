"""What a project's own tests take the gradient of is not put under `no_grad`, not even by an unsafe fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.doubts import Confidence
from torchmemlint.engine import context
from torchmemlint.engine.one_file import Fixing, Profile, check_file

LOSSES = """\
import torch
from torch import nn


def eta(net: nn.Module, loader):
    net.eval()
    total = 0
    for x in loader:
        total = total + net(x).mean()
    return total
"""
TEST = """\
import torch
from losses import eta


def test_of_eta():
    net = torch.nn.Linear(2, 2)
    {line}
"""


@pytest.mark.parametrize("place", ["test_losses.py", "tests/test_losses.py", "src/losses_test.py"])
@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("eta(net, [torch.ones(1, 2)]).backward()", False),
        ("torch.autograd.grad(eta(net, [torch.ones(1, 2)]), net.weight)", False),
        ("assert eta(net, [torch.ones(1, 2)]) > 0", True),
    ],
)
def test_a_gradient_that_a_test_takes_stays(tmp_path: Path, place: str, line: str, made: bool) -> None:
    root = tmp_path.resolve()
    (root / "losses.py").write_text(LOSSES)
    (root / place).parent.mkdir(exist_ok=True)
    (root / place).write_text(TEST.format(line=line))
    context.forget()
    codes = frozenset({"TML201"})
    profile = Profile(codes, root=root, confidence=Confidence.POSSIBLE, fixing=Fixing.PREVIEW, unsafe=True)
    fixed = check_file(root / "losses.py", profile).fixed
    context.forget()
    assert fixed is not None
    assert bool(fixed.applied) is made
    name = Path(place).name
    reasons = [why for _, why in fixed.rolled_back]
    assert reasons == ([] if made else [f"test_of_eta of {name} takes the gradient of what `eta` returns"])
