"""Python's stack for an analysis that recurses: deep, and in one stretch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_FRAMES = 8_000  # some twenty for each level of nesting that is let in
_WORDS = 500_000  # of eight bytes; Python rounds up what it asks for to a power of two: four megabytes here


def deep(work: Callable[[], T]) -> T:
    """Do it with room for deep recursion. Raises RecursionError where even that is not enough.

    Since 3.11 Python keeps frames in stretches of memory, of 16 kB (`push_chunk` of its pystate.c), which it gets from
    the system when a call begins that has no room in the last one, and returns when that call ends. A recursion that
    goes back and forth over such an end does so thousands of times in each file: a twentieth of a run's time. A stretch
    that begins with a large frame is as large as that asks for, and what is left of it is for the calls within.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        return _in_large_frame(work)
    finally:
        sys.setrecursionlimit(limit)


def _in_large_frame(work: Callable[[], T]) -> T:
    return work()


# It never uses what it says it may need, and memory that is not touched is none.
_in_large_frame.__code__ = _in_large_frame.__code__.replace(co_stacksize=_WORDS)
