"""Spreading files over processes: each worker is handed small batches, and its death costs one file.

A worker that is on a file for longer than the file's limits allow is ended from here: what it does may be out of the
reach of any exception, in a compiled parser for one. One that gave up a file ends, so that what it has half worked out
serves no other.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from torchmemlint.engine.context import prepare
from torchmemlint.engine.garbage import quiet_collector, set_aside
from torchmemlint.engine.one_file import FileResult, Profile, check_file, is_fleeting, passed_over
from torchmemlint.engine.watching import bounded_memory, processor_seconds, too_long
from torchmemlint.immutable import immutable
from torchmemlint.syntax import cst

_BYTES_PER_WORKER = 150_000  # about half a second of analysis: less is not worth a process
GRACE = 3.0  # seconds for a worker to notice itself that a file takes too long
_FAREWELL = 0.7  # seconds for workers to clean up: an interrupt is to end a run within one
_IDLE = 10  # how often the time limit a file may take by the clock: the machine may be busy, but not for ever


@immutable()
class Task:
    """A file to check with the profile of that number."""

    path: Path
    profile: int
    size: int  # bytes
    data: bytes | None = None  # check these bytes instead of what lies there


Batch = list[tuple[int, Task]]  # with the tasks' places in the order of the run


def workers_for(tasks: Sequence[Task], limit: int | None) -> int:
    """How many processes to use: the limit if given, but no more than the CPUs and the work allow."""
    most = limit or cpus()
    return max(1, min(most, len(tasks), sum(task.size for task in tasks) // _BYTES_PER_WORKER))


def check_all(
    tasks: Sequence[Task],
    profiles: Sequence[Profile],
    workers: int,
    progress: Callable[[int], None],
    *,
    apart: bool = False,
    ready: Reserve | None = None,
) -> list[FileResult]:
    """Check all files; the results are in the order of `tasks`. `progress` hears how many are done.

    `apart`: in other processes than this one, if these can be had for little, so that no file can end or stop it;
    `ready`: with a worker that may have started before.
    """
    results: dict[int, FileResult] = {}
    serial = workers == 1 and not (apart and tasks and _can_fork())
    found = _serial(tasks, profiles) if serial else _parallel(tasks, profiles, workers, ready or Reserve())
    with contextlib.closing(found):
        for number, result in found:
            results[number] = result
            progress(len(results))
    return [results[number] for number in range(len(tasks))]


def _serial(tasks: Sequence[Task], profiles: Sequence[Profile]) -> Generator[tuple[int, FileResult], None, None]:
    with quiet_collector() as collect:
        for number, task in enumerate(tasks):
            yield number, _check(task, profiles)
            collect()


def _check(task: Task, profiles: Sequence[Profile]) -> FileResult:
    return check_file(task.path, profiles[task.profile], task.data)


def _parallel(
    tasks: Sequence[Task], profiles: Sequence[Profile], workers: int, ready: Reserve
) -> Generator[tuple[int, FileResult], None, None]:
    pending = deque(_batches(tasks, profiles, workers))
    context = _context()
    team: dict[connection.Connection, _Worker] = {}
    aside = contextlib.ExitStack()

    def give(worker: _Worker) -> None:
        worker.give(pending.popleft())
        team[worker.pipe] = worker

    def leave(worker: _Worker) -> None:
        """Others do what is left of its batch."""
        del team[worker.pipe]
        if worker.batch:
            pending.appendleft(worker.batch)

    try:
        if pending and (early := ready.take()) is not None:
            give(early)  # it goes on with this when it has imported what it needs, whatever this process still does
        if _can_fork():
            if workers > 1:  # once here instead of once in each worker
                with quiet_collector():
                    warm_up(_codes(profiles))
                    cst.load()
                    prepare([(task.path, profiles[task.profile]) for task in tasks], workers)
            aside.enter_context(set_aside())
        while pending or team:
            while pending and len(team) < workers:
                give(_Worker.start(context, profiles))
            for readable in connection.wait(list(team), _soonest(worker.time_left for worker in team.values())):
                assert isinstance(readable, connection.Connection)
                worker = team[readable]
                try:
                    number, result = worker.receive()
                except (EOFError, OSError):  # it died: on the file that it had in hand
                    number, task = worker.batch.pop(0)
                    leave(worker)
                    yield number, FileResult(task.path, error=worker.obituary())
                    continue
                if is_fleeting(result):
                    leave(worker)
                    worker.end()
                elif len(worker.batch) < 2 and pending:
                    worker.give(pending.popleft())  # ahead: it need not wait for this when it has done the last one
                elif not worker.batch:
                    leave(worker)
                    worker.dismiss()
                yield number, result
            for worker in [one for one in team.values() if one.time_left == 0 and not one.pipe.poll()]:
                number, task = worker.batch.pop(0)
                leave(worker)
                worker.end()
                profile = profiles[task.profile]
                yield number, passed_over(task.path, too_long(profile.limits), profile)
    finally:
        _end(team.values())  # left early: interrupted
        aside.close()


class Reserve:
    """A worker that imports what it needs while this process finds out what there is to do. A context: ends it."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None

    def __enter__(self) -> Reserve:
        return self

    def __exit__(self, *_: object) -> None:
        if (worker := self.take()) is not None:
            worker.end()

    def call(self, profiles: Sequence[Profile]) -> None:
        """Start it, where that costs little."""
        if self._worker is None and _can_fork():
            self._worker = _Worker.start(_context(), profiles, early=True)

    def take(self) -> _Worker | None:
        """The worker, if it was started; once."""
        worker, self._worker = self._worker, None
        return worker


def _soonest(times: Iterable[float | None]) -> float | None:
    return min((one for one in times if one is not None), default=None)


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: connection.Connection
    profiles: Sequence[Profile]
    batch: Batch = field(default_factory=list)  # the first is the one in hand
    since: float = 0.0  # when it came to that
    spent: float | None = 0.0  # seconds that it had had of the processor by then

    @classmethod
    def start(
        cls, context: multiprocessing.context.BaseContext, profiles: Sequence[Profile], *, early: bool = False
    ) -> _Worker:
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(there, here, tuple(profiles), early), daemon=True)  # type: ignore[attr-defined]
        process.start()
        there.close()
        return cls(process, here, profiles)

    @property
    def time_left(self) -> float | None:
        """Seconds until nobody waits any longer for the file in hand; None for as many as it takes."""
        most = self.profiles[self.batch[0][1].profile].limits.time
        if not most:
            return None
        now = time.monotonic()
        at_once = self.since + most + GRACE - now
        if at_once > 0:
            return at_once  # it cannot have had more of the processor than has passed: /proc need not be read
        by_the_clock = self.since + _IDLE * most + GRACE - now
        spent = processor_seconds(self.process.pid)
        if spent is None or self.spent is None:
            return max(0.0, by_the_clock)
        return max(0.0, min(by_the_clock, self.spent + most + GRACE - spent))

    def receive(self) -> tuple[int, FileResult]:
        """The next of its results. Raises EOFError or OSError if it is dead."""
        received: tuple[int, FileResult, float] = self.pipe.recv()
        number, result, spent = received
        self.batch.pop(0)
        self._begin(spent)
        return number, result

    def _begin(self, spent: float | None) -> None:
        """It comes to the next file, after so many seconds of the processor."""
        self.since, self.spent = time.monotonic(), spent

    def give(self, batch: Batch) -> None:
        """Hand it files to check. A worker that is dead already is noticed when its answer is read."""
        if not self.batch:
            self._begin(processor_seconds(self.process.pid))
        self.batch += batch
        with contextlib.suppress(OSError):
            self.pipe.send(batch)

    def dismiss(self) -> None:
        """Let it end."""
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self.pipe.close()
        self.process.join()

    def end(self) -> None:
        """Stop it in the middle of its work; a file that it is writing is left as it was."""
        _end([self])

    def obituary(self) -> str:
        """How it ended, in words."""
        self.process.join(5)
        self.pipe.close()
        return obituary(self.process.exitcode)


def obituary(code: int | None) -> str:
    """How a process ended that had a file in hand, in words."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        hint = " (out of memory?)" if name == "SIGKILL" else ""
        return f"the worker process was killed by {name}{hint}"
    return f"the worker process ended with status {code}"


def _end(workers: Iterable[_Worker]) -> None:
    """Stop workers in the middle of their work, all within the time that one may take to tidy up."""
    ending = list(workers)
    for worker in ending:
        worker.process.terminate()
    latest = time.monotonic() + _FAREWELL
    for worker in ending:
        worker.process.join(max(0.0, latest - time.monotonic()))
        worker.process.kill()
    for worker in ending:
        worker.process.join()
        worker.pipe.close()


def _work(
    pipe: connection.Connection, other_end: connection.Connection, profiles: tuple[Profile, ...], early: bool
) -> None:
    """The life of a worker: batches in, one result for each file out. `early`: nobody has batches yet."""
    other_end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends us
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that clean-up code runs
    with contextlib.suppress(EOFError, OSError), quiet_collector() as collect:  # the parent has gone
        if early:
            warm_up(_codes(profiles))
        while (batch := _next(pipe)) is not None:
            for number, task in batch:
                with bounded_memory(profiles[task.profile].limits):
                    result = _check(task, profiles)
                pipe.send((number, result, time.process_time()))
                if is_fleeting(result):
                    return
                collect()


def _next(pipe: connection.Connection) -> Batch | None:
    """The next batch; None when there is none, or nobody to report to."""
    parent = multiprocessing.parent_process()
    while not pipe.poll(5):
        if parent is None or not parent.is_alive():
            return None
    batch: Batch | None = pipe.recv()
    return batch


def _batches(tasks: Sequence[Task], profiles: Sequence[Profile], workers: int) -> list[Batch]:
    """In batches of about a fortieth of a worker's share: project by project, of each the largest folders first.

    The files of a folder are context for each other more than those of others are: who has read one has read them all.
    The last batches are small, so that all workers end at about the same time.
    """
    left = sum(task.size for task in tasks)
    share, least = max(1, left // (workers * 40)), max(1, left // (workers * 400))
    batches: list[Batch] = []
    filled = share
    roots = [str(profile.root) for profile in profiles]
    last = None  # a worker keeps what it has read of few projects
    folders: Counter[Path] = Counter()
    for task in tasks:
        folders[task.path.parent] += task.size

    def turn(item: tuple[int, Task]) -> tuple[object, ...]:
        number, task = item
        folder = task.path.parent
        return roots[task.profile], -folders[folder], folder, -task.size, number

    for number, task in sorted(enumerate(tasks), key=turn):
        if filled >= min(share, max(least, left // (workers * 4))) or roots[task.profile] != last:
            batches.append([])
            filled = 0
        last = roots[task.profile]
        batches[-1].append((number, task))
        filled += task.size + 500  # an empty file is some work, too
        left -= task.size
    return batches


def _codes(profiles: Sequence[Profile]) -> frozenset[str]:
    return frozenset().union(*(profile.codes for profile in profiles))


def warm_up(codes: frozenset[str]) -> None:
    """Import what is needed to check files with these rules, by checking a little."""
    from torchmemlint.engine import audit, one_file
    from torchmemlint.engine.checking import check_text
    from torchmemlint.rules import registry

    audit.catalogue()
    one_file.is_relevant(b"")
    check_text("import torch\ndef f(x):\n    return x.detach()\n", Path("a.py"), codes & registry.by_code().keys())


def _context() -> multiprocessing.context.BaseContext:
    return multiprocessing.get_context("fork" if _can_fork() else "spawn")


def _can_fork() -> bool:
    return sys.platform == "linux" and "fork" in multiprocessing.get_all_start_methods()


def cpus() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
