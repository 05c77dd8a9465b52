"""Which device a new storage is counted on: what the mapping above knows and the execution below needs.

Tensors of the simulated GPU are tensors of the host whose storages the tracker has written down for `cuda:0`. An
operation's results are where its arguments are. That leaves what is made from nothing: a function that was given a
device *forces* it; otherwise, inside a function of torch that was given tensors of the GPU (or inside their
backward), what it makes for itself is there too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.tracker import StorageTracker, tensors_in

GPU = "cuda:0"
HOST = "cpu"
GPU_DEVICE = torch.device("cuda", 0)
HOST_DEVICE = torch.device("cpu")


class Placement:
    """The tags of tensors, and the device that applies where no tensor tells it."""

    def __init__(self, tracker: StorageTracker) -> None:
        self.tracker = tracker
        self.forced: str | None = None
        self._frames: list[tuple[Any, Any]] = []
        self.pinned: set[int] = set()

    def where(self, tensor: torch.Tensor) -> str:
        """The device of a tensor, as its program sees it."""
        found = self.tracker.device_of(tensor)
        if found is not None:
            return found
        if internals.storage_of(tensor) is None:  # a sparse tensor is where its values are
            return next((GPU for part in internals.parts_of(tensor) if self.where(part) == GPU), HOST)
        return HOST

    def on_gpu(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is on the simulated GPU."""
        return self.where(tensor) == GPU

    @contextlib.contextmanager
    def forcing(self, device: str | None) -> Iterator[None]:
        """While entered, everything that is made is on this device."""
        before, self.forced = self.forced, device
        try:
            yield
        finally:
            self.forced = before

    @contextlib.contextmanager
    def inside(self, arguments: Any, keywords: Any) -> Iterator[None]:
        """While entered, a function of torch runs that was given these."""
        self._frames.append((arguments, keywords))
        try:
            yield
        finally:
            self._frames.pop()

    def ambient(self) -> str:
        """Where the function that runs now makes its own tensors."""
        if self._frames:
            arguments, keywords = self._frames[-1]
            if any(self.on_gpu(one) for one in tensors_in(arguments)):
                return GPU
            if keywords and any(self.on_gpu(one) for one in tensors_in(keywords)):
                return GPU
        return HOST

    def pin(self, tensor: torch.Tensor) -> None:
        """Note that a tensor of the host is in pinned memory."""
        index = self.tracker.index_of(tensor)
        if index is not None:
            self.pinned.add(index)

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Whether it is."""
        return self.tracker.index_of(tensor) in self.pinned


def wanted(device: Any) -> str:
    """The device that a program's `device` argument means. Raises RuntimeError for a GPU that is not there."""
    if isinstance(device, int) and not isinstance(device, bool):
        device = torch.device("cuda", device)
    elif isinstance(device, str):
        device = torch.device(device)
    if not isinstance(device, torch.device) or device.type != "cuda":
        return HOST
    if device.index not in (None, 0):
        raise RuntimeError("CUDA error: invalid device ordinal (torchmemlint simulates one GPU, cuda:0)")
    return GPU
