"""Looking at all objects beside threads that go on."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from torchmemlint.runtime import threads
from torchmemlint.runtime.threads import Standstill, living, undisturbed


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


def test_no_thread_takes_over_in_one_within_another() -> None:
    worker = threading.Thread(target=time.sleep, args=(0.2,))
    worker.start()
    before, begun = sys.getswitchinterval(), time.monotonic()
    with undisturbed(), undisturbed():
        pass
    assert time.monotonic() - begun < 1.0, "it waits for the old interval once"
    assert sys.getswitchinterval() == before
    worker.join()


def test_a_look_waits_for_the_backwards_of_others_and_none_begins() -> None:
    standstill, told = Standstill(), []
    began, may_end = threading.Event(), threading.Event()

    def run() -> None:
        standstill.backward_begins()
        standstill.backward_begins()  # one within the other
        began.set()
        may_end.wait()
        standstill.backward_ends()
        told.append("first")
        standstill.backward_ends()
        standstill.backward_begins()
        told.append("second")
        standstill.backward_ends()

    worker = threading.Thread(target=run)
    worker.start()
    began.wait()
    threading.Timer(0.05, may_end.set).start()
    with standstill.held():
        with standstill.held():  # the same thread's
            pass
        time.sleep(0.05)
        assert told == ["first"]
    worker.join()
    assert told == ["first", "second"]


def test_a_look_does_not_wait_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_PATIENCE", 0.01)
    standstill = Standstill()
    worker = threading.Thread(target=standstill.backward_begins)
    worker.start()
    worker.join()
    with pytest.raises(TimeoutError, match="did not end"), standstill.held():
        pass
    standstill.backward_begins()
    with pytest.raises(TimeoutError, match="did not end"), standstill.held():
        pass


@pytest.mark.parametrize("how", ["set", "delete"])
def test_a_look_waits_for_others_that_drop_a_gradient(how: str) -> None:
    standstill, told = Standstill(), []
    began, may_end = threading.Event(), threading.Event()

    class Slow:
        @property
        def grad(self) -> None:
            return None

        @grad.setter
        def grad(self, value: None) -> None:
            self._drop()

        @grad.deleter
        def grad(self) -> None:
            self._drop()

        def _drop(self) -> None:
            began.set()
            may_end.wait()
            told.append("dropped")

    def drop(slow: Slow) -> None:
        if how == "set":
            slow.grad = None
        else:
            del slow.grad

    worker = threading.Thread(target=drop, args=(Slow(),))
    worker.start()
    began.wait()
    threading.Timer(0.05, may_end.set).start()
    with standstill.held():
        told.append("looked")
    worker.join()
    assert told == ["dropped", "looked"]
