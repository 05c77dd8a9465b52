"""Looking at all objects beside threads that go on."""

from __future__ import annotations

import sys
import threading
import time

from torchmemlint.runtime.threads import living, undisturbed


class _Kept:
    pass


class _Derived(_Kept):
    pass


def test_living_objects_of_a_class() -> None:
    kept = [_Kept(), _Derived()]
    for one in kept:
        one.__dict__["itself"] = one  # the collector knows what may be in a cycle
    assert set(map(id, kept)) <= set(map(id, living(_Kept)))
    assert [type(one) for one in living(_Derived)] == [_Derived]


def test_no_thread_takes_over() -> None:
    before = sys.getswitchinterval()
    done = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal done
        while not stop.is_set():
            done += 1

    worker = threading.Thread(target=count)
    worker.start()
    try:
        with undisturbed():
            since, until = done, time.monotonic() + 0.05
            while time.monotonic() < until:
                pass
            assert done == since
    finally:
        stop.set()
        worker.join()
    assert sys.getswitchinterval() == before
