"""`torch.nn.parallel.data_parallel` runs the network that it is given."""

from __future__ import annotations

from pathlib import Path

from torchmemlint.engine.checking import check_text

PROGRAM = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 512)).cuda().eval()
for x in torch.randn(100, 32, 512, device="cuda"):
    print(nn.parallel.data_parallel(net, x, [0, 1]).argmax(1).tolist())
"""


def test_a_pass_over_several_devices_is_one() -> None:
    (found,) = check_text(PROGRAM, Path("main.py"), frozenset({"TML201"}))
    assert found.span.start.row == 7
