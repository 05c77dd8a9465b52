"""Addresses without memory behind them, for tensors whose values are not computed."""

from __future__ import annotations

import contextlib
import functools
import mmap
from typing import Any

import torch

_ADDRESSES = 46
"""The arena has at most two to this power of addresses."""


class Arena:
    """Addresses without memory behind them. They can be read (zeros), should anything read them after all."""

    def __init__(self) -> None:
        self._buffer = _reserve()
        self._size = len(self._buffer)
        self._next = 0

    def storage(self, nbytes: int) -> torch.UntypedStorage:
        """So many bytes of it; each is handed out again only when all of them have been."""
        if self._next + nbytes > self._size:
            self._next = 0
        tensor = torch.frombuffer(self._buffer, dtype=torch.uint8, count=nbytes, offset=self._next)
        self._next += -(-nbytes // 512) * 512
        return tensor.untyped_storage()


@functools.cache
def arena() -> Arena:
    """The process's: a range this large is not to be had for every run of a process."""
    return Arena()


def _reserve() -> mmap.mmap:
    options: dict[str, Any] = {}
    if hasattr(mmap, "MAP_PRIVATE"):  # not on Windows
        no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000 if hasattr(mmap, "MAP_POPULATE") else 0)
        options["flags"] = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
    for power in range(_ADDRESSES, 29, -1):
        with contextlib.suppress(OSError, OverflowError):
            return mmap.mmap(-1, 1 << power, **options)
    raise MemoryError("no range of addresses is left for tensors that are not computed")
