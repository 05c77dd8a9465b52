"""One thread that does the analysis, so that the protocol is always answered at once.

Of two jobs under one key only the newer matters: the older is dropped, or stopped in the middle.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Pulse = Callable[[], None]  # raises `Stopped` where the job is no longer wanted

_STACK = 256 * 1024 * 1024  # bytes of address space: parsers are recursive, and threads get little on some systems
_SWITCH = 0.001  # seconds: how long the analysis may keep the interpreter from whoever answers the client
_QUIET = 1.0  # seconds without work before there is time to tidy up


class Stopped(Exception):  # noqa: N818 (nothing is wrong)
    """The job is no longer wanted."""


@dataclass(order=True)
class _Job(Generic[T]):
    priority: int
    number: int
    key: str = field(compare=False)
    run: Callable[[Pulse], T] = field(compare=False)
    future: Future[T] = field(compare=False)
    stopped: threading.Event = field(compare=False, default_factory=threading.Event)

    def pulse(self) -> None:
        if self.stopped.is_set():
            raise Stopped


class Worker:
    """Runs jobs one after the other, those of the lowest priority number first.

    `rest` is called when nothing has come for a while after work.
    """

    def __init__(self, rest: Callable[[], None] = lambda: None) -> None:
        self._rest = rest
        self._wake = threading.Condition()
        self._queue: list[_Job[Any]] = []
        self._running: _Job[Any] | None = None
        self._numbers = itertools.count()
        self._ended = False
        before = threading.stack_size(_STACK)
        self._thread = threading.Thread(target=self._live, name="torchmemlint analysis", daemon=True)
        self._thread.start()
        threading.stack_size(before)
        sys.setswitchinterval(_SWITCH)

    def submit(self, key: str, priority: int, run: Callable[[Pulse], T]) -> asyncio.Future[T]:
        """Have a job done. Its future is cancelled when a newer one comes in under the same key."""
        job: _Job[T] = _Job(priority, next(self._numbers), key, run, Future())
        with self._wake:
            self._drop(key)
            heapq.heappush(self._queue, job)
            # A job of less weight in the middle of its work gives way, and begins anew.
            if self._running is not None and self._running.priority > priority and not self._running.stopped.is_set():
                self._running.stopped.set()
                again = self._running
                heapq.heappush(self._queue, _Job(again.priority, again.number, again.key, again.run, again.future))
            self._wake.notify()
        return asyncio.wrap_future(job.future)

    def forget(self, key: str) -> None:
        """Drop the job under a key, or stop it."""
        with self._wake:
            self._drop(key)

    def end(self) -> None:
        """Stop everything."""
        with self._wake:
            self._ended = True
            for job in self._queue:
                job.future.cancel()
            self._queue.clear()
            if self._running is not None:
                self._running.stopped.set()
            self._wake.notify()
        self._thread.join(5)

    def _drop(self, key: str) -> None:
        for job in [job for job in self._queue if job.key == key]:
            self._queue.remove(job)
            job.future.cancel()
        heapq.heapify(self._queue)
        if self._running is not None and self._running.key == key:
            self._running.stopped.set()
            self._running.future.cancel()

    def _live(self) -> None:
        rested = True
        while True:
            with self._wake:
                while not self._queue and not self._ended:
                    if not self._wake.wait(None if rested else _QUIET) and not rested:
                        self._rest()
                        rested = True
                if self._ended:
                    return
                rested = False
                job = self._running = heapq.heappop(self._queue)
            if job.future.cancelled():
                continue
            result, error = None, None
            try:
                result = job.run(job.pulse)
            except BaseException as problem:  # noqa: BLE001 (it is whoever asked who must know)
                error = problem
            with self._wake:
                self._running = None
                if not job.stopped.is_set() and not job.future.cancelled():
                    if error is None:
                        job.future.set_result(result)
                    else:
                        job.future.set_exception(error)
