"""Time and memory that the check of a file takes, held against its limits.

`Watch` is asked again and again by the analysis itself, and so holds in any program that calls it. It is not asked
while a compiled parser works, or where the text has the analysis go around in one place: there, the limits of worker
processes hold (`torchmemlint.engine.pool`).
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from torchmemlint.config.limits import Limits
from torchmemlint.source.decoding import LimitReached

_UNTIMED = 4  # questions for each look at the time
_BETWEEN = 28  # questions for the time, for each one for the memory: it takes 10 microseconds
_ROOM = 1.25  # of the memory limit: what is asked for at once, while nobody watches
_STATM = Path("/proc/self/statm")  # sizes in pages: of the address space, of what is in memory


def _nothing() -> None:
    """For those who are not asked back."""


class Watch:
    """The watch over one file, from now on. Calling it raises `LimitReached`; `also` is called each time."""

    def __init__(self, limits: Limits, also: Callable[[], None] | None = None) -> None:
        self._limits = limits
        self._also = also or _nothing
        self._until = time.process_time() + limits.time if limits.time else float("inf")
        self._due = time.monotonic() + limits.time if limits.time else float("inf")  # the kernel is asked from then on
        self._asked = -1
        most = limits.bytes_of_memory
        resident = _pages()[1] if most is not None else 0
        self._most = resident + most if resident and most is not None else None  # bytes

    def __call__(self) -> None:
        """Raise LimitReached where the file has had its share."""
        self._also()
        self._asked += 1
        if self._asked % _UNTIMED:
            return
        if time.monotonic() >= self._due:
            self._look()
        if self._most is not None and self._asked % _BETWEEN == 0 and _pages()[1] > self._most:
            raise too_much_memory(self._limits)

    def _look(self) -> None:
        """Ask the kernel for the processor time, which takes long, and when to ask again.

        A thread has no more of it than passes on a clock; so nobody need ask before what is left has passed.
        """
        left = self._until - time.process_time()
        if left < 0:
            raise too_long(self._limits)
        self._due = time.monotonic() + left


def too_long(limits: Limits) -> LimitReached:
    """The file took more time than it may."""
    return LimitReached("time", f"checking it takes more than {limits.time:g} seconds of processor time")


def too_much_memory(limits: Limits) -> LimitReached:
    """The file took more memory than it may."""
    return LimitReached("memory", f"checking it takes more than {limits.memory:g} MB")


@contextlib.contextmanager
def bounded_memory(limits: Limits) -> Iterator[None]:
    """Within it, allocations beyond the limit fail, where the system can have them fail. For a worker's own process."""
    space, most = _pages()[0], limits.bytes_of_memory
    if not space or most is None:
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    wanted = space + int(most * _ROOM)
    allowed = [limit for limit in before if limit != resource.RLIM_INFINITY]
    try:
        resource.setrlimit(resource.RLIMIT_AS, (min([wanted, *allowed]), before[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def processor_seconds(process: int | None) -> float | None:
    """What a process has had of the processor; None where nobody tells."""
    if sys.platform != "linux" or process is None:
        return None
    try:
        told = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:  # no /proc, or no such process any more
        return None
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def _pages() -> tuple[int, int]:
    """(address space, memory) of this process in bytes; zeros where nobody tells."""
    if sys.platform != "linux":
        return 0, 0
    try:
        space, resident = _STATM.read_bytes().split()[:2]
    except OSError:  # no /proc, as in some sandboxes
        return 0, 0
    page = os.sysconf("SC_PAGE_SIZE")
    return int(space) * page, int(resident) * page
