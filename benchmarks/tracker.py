"""What watching costs: a training step under the tracker, and simulated, against the same step alone.

    python benchmarks/tracker.py

Ratios of medians in one run on the host, with one thread. What the tracker adds is a fixed time for each operation, so
the ratio is small where operations are large, and large where they are tiny.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import torch
from torch import nn

from torchmemlint.runtime import track_memory

WARM_UP = 2


@dataclass(frozen=True, slots=True)
class Case:
    """A model and its batch, on a device."""

    name: str
    model: Callable[[], nn.Module]
    shape: tuple[int, ...]
    steps: int


def transformer() -> nn.Module:
    """Four encoder layers of width 512."""
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 4)


def convolutional() -> nn.Module:
    """Eight convolutions with batch norm, 64 channels."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, padding=1)]
    for _ in range(8):
        layers += [nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*layers)


def perceptron() -> nn.Module:
    """Four linear layers of width 1024."""
    return nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.GELU())])


def tiny() -> nn.Module:
    """Four linear layers of width 16: the worst that can be."""
    return nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(16, 16), nn.ReLU())])


CASES = (
    Case("transformer, 4 x 512, batch 8 x 128", transformer, (8, 128, 512), 5),
    Case("convolutional, 8 x 64, batch 8 x 56 x 56", convolutional, (8, 3, 56, 56), 5),
    Case("perceptron, 4 x 1024, batch 256", perceptron, (256, 1024), 20),
    Case("tiny perceptron, 4 x 16, batch 8", tiny, (8, 16), 100),
)


def seconds_per_step(case: Case, device: str) -> float:
    """The median time of a training step."""
    torch.manual_seed(0)
    model = case.model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(case.shape, device=device)
    times = []
    for _ in range(WARM_UP + case.steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        times.append(time.perf_counter() - began)
    return statistics.median(times[WARM_UP:])


def main() -> int:
    torch.set_num_threads(1)
    print("| a training step of | alone | under the tracker | simulated CUDA |")
    print("|---|--:|--:|--:|")
    for case in CASES:
        alone = seconds_per_step(case, "cpu")
        with track_memory("cpu"):
            tracked = seconds_per_step(case, "cpu")
        with track_memory("simulated"):
            simulated = seconds_per_step(case, "cuda")
        again = seconds_per_step(case, "cpu")
        alone = min(alone, again)
        ratios = f"{tracked / alone:.2f} x | {simulated / alone:.2f} x"
        print(f"| {case.name} | {alone * 1e3:.1f} ms | {ratios} |", flush=True)
    print(f"\ntorch {torch.__version__}, {platform.system()} {platform.machine()}, {date.today().isoformat()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
