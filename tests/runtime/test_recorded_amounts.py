"""The bytes that a pass is estimated to keep are those that it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from torchmemlint.api import check_source

torch = pytest.importorskip("torch")

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn

def block(width):
    return nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

class Part(nn.Module):
    def __init__(self, width, factor=2):
        super().__init__()
        self.layer = nn.Linear(width, width * factor)
        self.back = nn.Linear(width * factor, width)

    def forward(self, x):
        return self.back(F.relu(self.layer(x)))
"""
NETWORKS = {
    "linear": ("nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 512), nn.Tanh())", "512, 64"),
    "conv": ("nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.LeakyReLU(0.2), nn.MaxPool2d(2), "
             "nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 15 * 15, 10))", "8, 3, 64, 64"),
    "transposed": ("nn.Sequential(nn.ConvTranspose2d(100, 128, 4, 1, 0), nn.BatchNorm2d(128), nn.ReLU(True), "
                   "nn.ConvTranspose2d(128, 3, 4, 2, 1), nn.Sigmoid())", "256, 100, 1, 1"),
    "own": ("Part(512)", "1024, 512"),
    "nested": ("nn.Sequential(Part(256, factor=8), nn.Dropout(0.0), nn.Linear(256, 1))", "1024, 256"),
}  # fmt: skip
ABOVE = {"conv": 1.3, "nested": 1.3}  # masks and indices are not counted; a tensor may be counted beside its twin


def kept(network: str, shape: str) -> int:
    """The bytes that one pass keeps, but for parameters and the input."""
    names: dict[str, Any] = {}
    exec(HEAD + f"net = {network}\nx = torch.randn({shape})\n", names)
    own = {p.untyped_storage().data_ptr() for p in [*names["net"].parameters(), *names["net"].buffers(), names["x"]]}
    seen: dict[int, Any] = {}

    def pack(tensor: Any) -> Any:
        seen[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = names["net"](names["x"])
    assert result is not None
    return sum(tensor.untyped_storage().nbytes() for place, tensor in seen.items() if place not in own)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_estimated_is_what_is_kept(name: str) -> None:
    network, shape = NETWORKS[name]
    text = (
        HEAD
        + f"""
def evaluate(batches):
    net = {network}
    for batch in batches:
        print(net(torch.randn({shape})).mean().item())
"""
    )
    (found,) = check_source(text, select=["TML201"], settings={"confidence": "possible"})
    assert found.amount is not None
    real = kept(network, shape)
    assert real / ABOVE.get(name, 1.05) <= found.amount.nbytes <= real * ABOVE.get(name, 1.05)
    assert found.amount.each == f"batch of {shape.split(',')[0]}"
