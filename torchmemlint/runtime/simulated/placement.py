"""Which device a new storage is counted on: what the mapping above knows and the execution below needs.

Tensors of a simulated GPU are tensors of the host whose storages the tracker has written down for `cuda:0`,
`cuda:1` and so on. An operation's results are where its arguments are. That leaves what is made from nothing: a
function that was given a device *forces* it; otherwise, inside a function of torch that was given tensors of a GPU
(or inside their backward), what it makes for itself is there too.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.tracker import StorageTracker, tensors_in

HOST = "cpu"
HOST_DEVICE = torch.device("cpu")


class _OfThread(threading.local):
    """What holds for one thread: as on a GPU, each has a current device of its own."""

    def __init__(self) -> None:
        self.current = 0
        self.forced: str | None = None
        self.frames: list[tuple[Any, Any]] = []


class Placement:
    """The tags of tensors, and the device that applies where no tensor tells it.

    `gpus` are the simulated ones in order; `current` is the number of the one that `cuda` means.
    """

    def __init__(self, tracker: StorageTracker, count: int = 1) -> None:
        self.tracker = tracker
        self.gpus = {f"cuda:{number}": torch.device("cuda", number) for number in range(count)}
        self._here = _OfThread()
        self.pinned: set[int] = set()

    @property
    def current(self) -> int:
        """The number of this thread's current GPU."""
        return self._here.current

    @current.setter
    def current(self, number: int) -> None:
        self._here.current = number

    @property
    def forced(self) -> str | None:
        """Where everything is that this thread makes now; None where its arguments tell."""
        return self._here.forced

    def where(self, tensor: torch.Tensor) -> str:
        """The device of a tensor, as its program sees it."""
        found = self.tracker.device_of(tensor)
        if found is not None:
            return found
        if internals.storage_of(tensor) is None:  # a sparse tensor is where its values are
            return next(
                (found for part in internals.parts_of(tensor) if (found := self.where(part)) in self.gpus), HOST
            )
        return HOST

    def on_gpu(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is on a simulated GPU."""
        return self.where(tensor) in self.gpus

    def number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor's GPU; -1 for the host, as `Tensor.get_device` has it."""
        device = self.gpus.get(self.where(tensor))
        return -1 if device is None else device.index

    @property
    def gpu(self) -> str:
        """The GPU that `cuda` means now."""
        return f"cuda:{self.current}"

    @contextlib.contextmanager
    def chosen(self, number: int) -> Iterator[None]:
        """While entered, `cuda` means the GPU of this number; a negative one changes nothing."""
        before = self.current
        self.current = number if number >= 0 else before
        try:
            yield
        finally:
            self.current = before

    @contextlib.contextmanager
    def forcing(self, device: str | None) -> Iterator[None]:
        """While entered, everything that is made is on this device."""
        here = self._here
        before, here.forced = here.forced, device
        try:
            yield
        finally:
            here.forced = before

    @contextlib.contextmanager
    def inside(self, arguments: Any, keywords: Any) -> Iterator[None]:
        """While entered, a function of torch runs that was given these."""
        frames = self._here.frames
        frames.append((arguments, keywords))
        try:
            yield
        finally:
            frames.pop()

    def ambient(self) -> str:
        """Where the function that runs now makes its own tensors."""
        if self._here.frames:
            arguments, keywords = self._here.frames[-1]
            for given in (arguments, keywords) if keywords else (arguments,):
                for one in tensors_in(given):
                    found = self.where(one)
                    if found in self.gpus:
                        return found
        return HOST

    def pin(self, tensor: torch.Tensor) -> None:
        """Note that a tensor of the host is in pinned memory."""
        index = self.tracker.index_of(tensor)
        if index is not None:
            self.pinned.add(index)

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Whether it is."""
        return self.tracker.index_of(tensor) in self.pinned

    def wanted(self, device: Any) -> str:
        """The device that a program's `device` argument means. Raises RuntimeError for a GPU that is not there."""
        if isinstance(device, int) and not isinstance(device, bool):
            device = torch.device("cuda", device)
        elif isinstance(device, str):
            device = torch.device(device)
        if not isinstance(device, torch.device) or device.type != "cuda":
            return HOST
        name = self.gpu if device.index is None else f"cuda:{device.index}"
        if name not in self.gpus:
            raise RuntimeError(f"CUDA error: invalid device ordinal (torchmemlint simulates {self._how_many()})")
        return name

    def _how_many(self) -> str:
        if len(self.gpus) == 1:
            return "one GPU, cuda:0; --devices makes it more"
        return f"{len(self.gpus)} GPUs, {next(iter(self.gpus))} to {next(reversed(self.gpus))}"
