"""The program's own threads: each runs inside what measures the thread that began it. Knows nothing of torch.

torch's modes hold for the thread that entered them. A program that trains in a worker would else seem to allocate
nothing. Nor may what looks at all objects disturb them.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from torchmemlint.runtime.loops import StopRun

T = TypeVar("T")

_SWITCHED = 1.0
"""Seconds that another thread waits for the interpreter while objects are counted: longer than that takes."""


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Until it is left, no other thread that runs Python takes over: what the collector gives may be held.

    Among its objects are tuples that other threads are still filling. A second reference to one makes the thread that
    fills it fail with a SystemError (`_PyTuple_Resize` in CPython's Objects/tupleobject.c).
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCHED)
    try:
        if threading.active_count() > 1:  # one that waits already asks for its turn when the old interval is over
            asked = time.monotonic() + 2 * before
            while time.monotonic() < asked:
                pass
        yield
    finally:
        sys.setswitchinterval(before)


def living(kind: type[T]) -> list[T]:
    """All objects of a class, and of those derived from it, that the garbage collector knows."""
    with undisturbed():
        return [one for one in gc.get_objects() if issubclass(type(one), kind)]


@contextlib.contextmanager
def following_threads(entering: Callable[[], contextlib.AbstractContextManager[object]]) -> Iterator[None]:
    """Until it is left, each thread that is started runs within what `entering` gives; this package's own do not."""
    original = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if not type(thread).__module__.startswith(f"{__package__}."):
            run = thread.run

            def watched() -> None:
                with contextlib.suppress(StopRun), entering():
                    run()

            thread.run = watched  # type: ignore[method-assign]
        original(thread)

    threading.Thread.start = start  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        threading.Thread.start = original  # type: ignore[method-assign]
