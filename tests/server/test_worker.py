"""The thread that does the analysis: what is newer or more urgent comes first."""

from __future__ import annotations

import asyncio
import threading

import pytest

pytest.importorskip("pygls")

from torchmemlint.server.worker import Worker


@pytest.fixture
def worker():
    found = Worker()
    yield found
    found.end()


def run(scenario) -> None:
    asyncio.run(asyncio.wait_for(scenario, 30))


def test_a_newer_job_stops_the_older_one_under_its_key(worker) -> None:
    began = threading.Event()

    def endless(pulse):
        began.set()
        while True:
            pulse()

    async def scenario() -> None:
        older = worker.submit("a", 0, endless)
        await asyncio.to_thread(began.wait)
        newer = worker.submit("a", 0, lambda pulse: "new")
        assert await newer == "new"
        await asyncio.wait([older])
        assert older.cancelled()

    run(scenario())


def test_an_urgent_job_goes_first_and_the_other_begins_anew(worker) -> None:
    began = threading.Event()
    done: list[str] = []

    def slow(pulse):
        first = not began.is_set()
        began.set()
        while first:
            pulse()
        done.append("slow")

    async def scenario() -> None:
        other = worker.submit("b", 1, slow)
        await asyncio.to_thread(began.wait)
        await worker.submit("a", 0, lambda pulse: done.append("urgent"))
        await other
        assert done == ["urgent", "slow"]

    run(scenario())


def test_what_a_job_raises_reaches_who_asked(worker) -> None:
    async def scenario() -> None:
        with pytest.raises(ZeroDivisionError):
            await worker.submit("a", 0, lambda pulse: 1 // 0)
        assert await worker.submit("a", 0, lambda pulse: 1) == 1

    run(scenario())


def test_a_forgotten_job_is_not_done(worker) -> None:
    hold = threading.Event()
    done: list[str] = []

    async def scenario() -> None:
        first = worker.submit("a", 0, lambda pulse: hold.wait(20))
        second = worker.submit("b", 0, lambda pulse: done.append("b"))
        worker.forget("b")
        hold.set()
        await first
        assert second.cancelled()
        assert await worker.submit("c", 0, lambda pulse: "c") == "c"
        assert done == []

    run(scenario())


def test_there_is_a_rest_after_work() -> None:
    rests = []
    tired = Worker(rest=lambda: rests.append(1))

    async def scenario() -> None:
        await tired.submit("a", 0, lambda pulse: None)
        while not rests:
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.5)
        assert rests == [1]

    try:
        run(scenario())
    finally:
        tired.end()
