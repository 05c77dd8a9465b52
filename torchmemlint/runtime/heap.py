"""The bytes that the C library's allocator has handed out: what a program holds on the host beside tensors.

Graph nodes live there, so a chain of them that grows shows here where it holds no tensor. Knows nothing of torch.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import lru_cache

_FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()


class _Information(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


@lru_cache(maxsize=1)
def _mallinfo() -> Callable[[], _Information] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        function = ctypes.CDLL("libc.so.6").mallinfo2  # glibc 2.33 and newer
    except (OSError, AttributeError):
        return None
    function.restype = _Information
    return function


def heap_bytes() -> int | None:
    """Bytes in use, by the allocator's own account (large blocks included); None where it gives none."""
    mallinfo = _mallinfo()
    if mallinfo is None:
        return None
    information = mallinfo()
    return int(information.uordblks + information.hblkhd)
