"""On what memory is measured: backends behind one interface, named in every report.

`cuda` reads the caching allocator of a real GPU; `cpu` counts the tensors of the program's own run on the host;
`simulated` runs a program for CUDA on the host and asks a model of the allocator.
"""

from __future__ import annotations

import abc
import contextlib
from array import array
from collections.abc import Iterator
from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.allocator_history import AllocatorUse, allocator_use
from torchmemlint.runtime.ledger import Ledger
from torchmemlint.runtime.threads import following_threads
from torchmemlint.runtime.tracker import StorageTracker

HOST = "cpu"
_NO_ACCELERATORS = (HOST, "meta")  # what is on `meta` has no bytes
NAMES = ("auto", "cuda", "cpu", "simulated")
BLOCK = 512
"""What CUDA's caching allocator rounds up to (`kMinBlockSize` of c10/cuda/CUDACachingAllocator)."""
ENTRIES = 200_000
"""Of the allocator's history that are kept, the last ones: one takes up to some KB."""


class Backend(abc.ABC):
    """A way to measure. `tracker` is entered by `running`, which is used once."""

    name: str
    tracker: StorageTracker

    @abc.abstractmethod
    def running(self) -> contextlib.AbstractContextManager[None]:
        """While entered, what the program does is measured."""

    def entering(self) -> contextlib.AbstractContextManager[Any]:
        """While entered, this thread is measured."""
        return self.tracker

    def device(self) -> str:
        """The device that a report is about: the accelerator of which the program used most, else the host."""
        return max(self.devices(), key=lambda device: self.ledger.peaks[device], default=HOST)

    def devices(self) -> list[str]:
        """The accelerators that the program used, in order."""
        peaks = self.ledger.peaks
        return sorted(one for one in self.ledger.devices if one not in _NO_ACCELERATORS and peaks.get(one))

    @property
    def ledger(self) -> Ledger:
        """What the tracker wrote down."""
        return self.tracker.ledger

    def peak_allocated(self, device: str) -> int:
        """The most bytes that were allocated at once on a device, above those before the measurement."""
        return self.ledger.peaks.get(device, 0)

    def peak_reserved(self, device: str) -> int | None:
        """The most bytes that the allocator took from the device; None where there is no such allocator."""
        return None

    def block_size(self, device: str) -> int:
        """The bytes of which the allocator's blocks are multiples; 1 where there is no such allocator."""
        return 1

    def allocator_use(self, device: str) -> AllocatorUse | None:
        """What the allocator of a device told of itself; None where there is none, or nobody asked."""
        return None

    def capacity(self, device: str) -> int | None:
        """The bytes that a device has for torch; None for the host."""
        return None

    @property
    def card_name(self) -> str:
        """The GPU, real or simulated; empty where the host is measured."""
        return ""

    def describe(self) -> str:
        """The backend in words, for a report's first line."""
        return self.name


class Cpu(Backend):
    """The program as it runs on the host, each tensor storage counted."""

    name = "cpu"

    def __init__(self) -> None:
        self.tracker = StorageTracker()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Enter the tracker."""
        with following_threads(self.entering), self.entering():
            yield

    def describe(self) -> str:
        """Counted, not sampled."""
        return "cpu (every tensor storage counted)"


class Cuda(Backend):
    """A real GPU: the allocator's own figures, with the tracker for the lines they belong to."""

    name = "cuda"

    def __init__(self, *, history: bool = False) -> None:
        if not torch.cuda.is_available():
            raise RuntimeError("no CUDA device is available; use the backend `simulated` or `cpu`")
        self.tracker = StorageTracker()
        self._with_history = history
        self._snapshot: dict[str, Any] | None = None
        self._before: dict[str, tuple[int, int]] = {}
        self._peaks: dict[str, tuple[int, int]] = {}

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Enter the tracker, with the allocator's peak counters set back first and read at the end."""
        devices = {f"cuda:{number}": number for number in range(torch.cuda.device_count())}
        for device, number in devices.items():
            torch.cuda.synchronize(number)
            torch.cuda.reset_peak_memory_stats(number)
            self._before[device] = torch.cuda.memory_allocated(number), torch.cuda.memory_reserved(number)
        if self._with_history and internals.record_history(ENTRIES):
            self.tracker.addresses = array("Q")
        try:
            with following_threads(self.entering), self.entering():
                yield
        finally:
            for device, number in devices.items():
                torch.cuda.synchronize(number)
                self._peaks[device] = torch.cuda.max_memory_allocated(number), torch.cuda.max_memory_reserved(number)
            self._end_history()

    def _end_history(self) -> None:
        if self.tracker.addresses is not None and self._snapshot is None:
            self._snapshot = internals.end_history()

    def allocator_use(self, device: str) -> AllocatorUse | None:
        """By the allocator's snapshot and history, against the addresses of the storages that the tracker saw."""
        self._end_history()
        addresses, ledger = self.tracker.addresses, self.ledger
        if self._snapshot is None or addresses is None or device not in self._before:
            return None
        owned = (
            (address, ledger.nbytes(index)) for index, address in enumerate(addresses) if ledger.device(index) == device
        )
        number = torch.device(device).index or 0
        return allocator_use(self._snapshot, number, owned, self.tracker.sites.is_users_file, ENTRIES)

    def _now(self, device: str) -> tuple[int, int]:
        if device in self._peaks:
            return self._peaks[device]
        return torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)

    def peak_allocated(self, device: str) -> int:
        """By the allocator's own account; the tracker's for the host."""
        if device not in self._before:
            return super().peak_allocated(device)
        return self._now(device)[0] - self._before[device][0]

    def peak_reserved(self, device: str) -> int | None:
        """By the allocator's own account, with what was reserved before."""
        return self._now(device)[1] if device in self._before else None

    def block_size(self, device: str) -> int:
        """The caching allocator rounds up to 512 bytes."""
        return BLOCK if device in self._before else 1

    def capacity(self, device: str) -> int | None:
        """As its driver says."""
        return int(torch.cuda.get_device_properties(device).total_memory) if device in self._before else None

    @property
    def card_name(self) -> str:
        """As its driver calls it."""
        return torch.cuda.get_device_name()

    def describe(self) -> str:
        """The card and the torch that ran it."""
        return f"cuda ({self.card_name}, torch {torch.__version__})"


def choose(
    name: str = "auto",
    *,
    fake: bool = False,
    card: str | None = None,
    memory: int | None = None,
    limit: int | None = None,
    devices: int | None = None,
    history: bool = False,
) -> Backend:
    """The backend of a name; `auto` is `cuda` where there is a GPU, else `simulated`.

    With `history`, a real GPU's allocator writes down what it does, in place of what the program may have it write.
    `fake` (compute shapes only), `card`, its bytes (`memory`) and the number of `devices` are for `simulated`, which
    they ask for where the name is `auto`; so is `limit`, the bytes at which memory runs out, whatever the card has.
    Raises RuntimeError for `cuda` without a GPU, ValueError for a name that is none or what does not go together.
    """
    simulating = fake or any(given is not None for given in (card, memory, limit, devices))
    if name == "auto":
        name = "simulated" if simulating or not torch.cuda.is_available() else "cuda"
    if name not in NAMES:
        raise ValueError(f"unknown backend {name!r}; it is one of {', '.join(NAMES)}")
    if name == "simulated":
        from torchmemlint.runtime.simulated.backend import Simulated

        return Simulated(card, memory=memory, fake=fake, devices=devices or 1, limit=limit)
    if simulating:
        raise ValueError(f"the backend {name} measures what is there; only `simulated` takes a card or is fake")
    return Cuda(history=history) if name == "cuda" else Cpu()
