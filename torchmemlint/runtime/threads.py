"""The program's own threads: each runs inside what measures the thread that began it. Knows nothing of torch.

torch's modes hold for the thread that entered them. A program that trains in a worker would else seem to allocate
nothing. Nor may what looks at all objects disturb them.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import gc
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import TypeVar

from torchmemlint.runtime.loops import StopRun

T = TypeVar("T")

_SWITCHED = 5.0
"""Seconds that another thread waits for the interpreter while objects are looked at: longer than that takes."""
_PAUSE = 0.001
"""Seconds between two looks at where other threads are."""
_PATIENCE = 10.0
"""Seconds that a look waits for what other threads are doing; one of them may wait for the thread that looks."""


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Until it is left, no other thread that runs Python takes over: what the collector gives may be held.

    Among its objects are tuples that other threads are still filling. A second reference to one makes the thread that
    fills it fail with a SystemError (`_PyTuple_Resize` in CPython's Objects/tupleobject.c).
    """
    before = sys.getswitchinterval()
    if before == _SWITCHED:  # as it is already
        yield
        return
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


def _others_drop_gradients(me: int) -> bool:
    frames = [frame for thread, frame in sys._current_frames().items() if thread != me]
    return any(map(_drops_gradient, frames))


def _drops_gradient(frame: FrameType | None) -> bool:
    """Whether a thread is in the middle of an assignment to an attribute `grad`, or of its deletion."""
    while frame is not None:
        if frame.f_lasti in _gradients_set(frame.f_code):
            return True
        frame = frame.f_back
    return False


@functools.lru_cache(maxsize=1024)
def _gradients_set(code: CodeType) -> frozenset[int]:
    """Where the instructions are that set or delete an attribute `grad`."""
    if "grad" not in code.co_names:
        return frozenset()
    return frozenset(
        one.offset
        for one in dis.get_instructions(code)
        if one.opname in ("STORE_ATTR", "DELETE_ATTR") and one.argval == "grad"
    )


class Standstill:
    """Lets one thread look at tensors and graphs that no other thread of the program changes meanwhile.

    Operations take turns by `turn`; a look holds it. A backward sets gradients and frees saved tensors in C++, without
    the interpreter's lock, so that reading them beside it ends the process: a look waits for those that run, and none
    begins before the look is over. So does reading a gradient that another thread is dropping: torch lets the lock go
    in the middle of `parameter.grad = None`, when the parameter still refers to what is half gone. A look begins where
    no other thread stands there, and threads take over only where the look itself waits.
    """

    def __init__(self) -> None:
        self.turn = threading.RLock()
        self._changed = threading.Condition()
        self._running: Counter[int] = Counter()  # backwards that run now, by the thread
        self._looking: int | None = None  # the thread

    def backward_begins(self) -> None:
        """Wait for a look to be over, unless it or a backward around this one is the same thread's."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: self._looking in (None, me) or bool(self._running[me]))
            self._running[me] += 1

    def backward_ends(self) -> None:
        """It has run, or failed."""
        with self._changed:
            self._running[threading.get_ident()] -= 1
            self._changed.notify_all()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the other threads until it is left. Raises TimeoutError where a backward of another does not end."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: self._looking in (None, me))
            around, self._looking = self._looking, me
            alone = self._changed.wait_for(lambda: self._is_alone(me), _PATIENCE)
        try:
            if not alone:
                raise TimeoutError(f"a backward of another thread did not end within {_PATIENCE} s")
            until = time.monotonic() + _PATIENCE
            while True:
                with self.turn, undisturbed():
                    if not _others_drop_gradients(me):
                        yield
                        return
                if time.monotonic() > until:
                    raise TimeoutError(f"another thread did not drop a gradient within {_PATIENCE} s")
                time.sleep(_PAUSE)
        finally:
            with self._changed:
                self._looking = around
                self._changed.notify_all()

    def _is_alone(self, me: int) -> bool:
        return not any(count for thread, count in self._running.items() if thread != me)
