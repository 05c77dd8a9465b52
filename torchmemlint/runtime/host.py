"""The host's heap beside the device's memory: what autograd's nodes, and Python's objects, take there.

A graph whose backward has run holds no activations any more, but its nodes stay on the host for as long as anybody
holds their output. They are not tensors, so only the C library can count them.
"""

from __future__ import annotations

import ctypes
import functools
import gc
from collections.abc import Callable
from pathlib import Path


class _MallInfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


@functools.cache
def _statistics() -> Callable[[], _MallInfo] | None:
    try:
        function = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    function.restype = _MallInfo
    return function


def private_bytes() -> int | None:
    """The bytes of this process that no other shares, written or copied; None where the system does not tell (Linux
    does)."""
    try:
        with Path("/proc/self/smaps_rollup").open(encoding="ascii") as stream:
            sizes = [int(line.split()[1]) for line in stream if line.startswith("Private_Dirty:")]
    except OSError:
        return None
    return sum(sizes) * 1024 if sizes else None


def heap_bytes(*, collect: bool = True) -> int | None:
    """The bytes in use on this process's heap; None where the C library does not tell (it is glibc 2.33 that does).

    Garbage that Python has not collected yet counts, so it is collected first; not so without `collect`, for runs
    in which the program's own collections belong to what is measured.
    """
    statistics = _statistics()
    if statistics is None:
        return None
    if collect:
        gc.collect()
    told = statistics()
    return int(told.uordblks + told.hblkhd)
