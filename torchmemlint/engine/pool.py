"""Spreading files over processes: each worker is handed small batches, and its death costs one file."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from torchmemlint.engine.one_file import FileResult, Profile, check_file

_BYTES_PER_WORKER = 150_000  # about half a second of analysis: less is not worth a process
_BYTES_PER_COLLECTION = 5_000_000  # of source; bounds what reference cycles can hold on to


@dataclass(frozen=True, slots=True)
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
    tasks: Sequence[Task], profiles: Sequence[Profile], workers: int, progress: Callable[[int], None]
) -> list[FileResult]:
    """Check all files; the results are in the order of `tasks`. `progress` hears how many are done."""
    results: dict[int, FileResult] = {}
    found = _serial(tasks, profiles) if workers == 1 else _parallel(tasks, profiles, workers)
    with contextlib.closing(found):
        for number, result in found:
            results[number] = result
            progress(len(results))
    return [results[number] for number in range(len(tasks))]


def _serial(tasks: Sequence[Task], profiles: Sequence[Profile]) -> Generator[tuple[int, FileResult], None, None]:
    with quiet_collector() as collect:
        for number, task in enumerate(tasks):
            yield number, _check(task, profiles)
            collect(task.size)


def _check(task: Task, profiles: Sequence[Profile]) -> FileResult:
    return check_file(task.path, profiles[task.profile], task.data)


def _parallel(
    tasks: Sequence[Task], profiles: Sequence[Profile], workers: int
) -> Generator[tuple[int, FileResult], None, None]:
    pending = deque(_batches(tasks, workers))
    context = multiprocessing.get_context("fork" if _can_fork() else "spawn")
    if _can_fork():
        _warm_up()  # once here instead of once in each worker
        gc.collect()
        gc.freeze()
    team: dict[connection.Connection, _Worker] = {}
    try:
        while pending or team:
            while pending and len(team) < workers:
                worker = _Worker.start(context, profiles)
                worker.give(pending.popleft())
                team[worker.pipe] = worker
            for ready in connection.wait(list(team)):
                assert isinstance(ready, connection.Connection)
                worker = team[ready]
                try:
                    number, result = worker.pipe.recv()
                except (EOFError, OSError):  # it died: on the file that it had in hand
                    del team[ready]
                    (number, task), rest = worker.batch[0], worker.batch[1:]
                    if rest:
                        pending.appendleft(rest)
                    yield number, FileResult(task.path, error=worker.obituary())
                    continue
                worker.batch.pop(0)
                if not worker.batch:
                    if pending:
                        worker.give(pending.popleft())
                    else:
                        del team[ready]
                        worker.dismiss()
                yield number, result
    finally:
        for worker in team.values():  # left early: interrupted
            worker.end()
        if _can_fork():
            gc.unfreeze()


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: connection.Connection
    batch: Batch

    @classmethod
    def start(cls, context: multiprocessing.context.BaseContext, profiles: Sequence[Profile]) -> _Worker:
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(there, here, tuple(profiles)), daemon=True)  # type: ignore[attr-defined]
        process.start()
        there.close()
        return cls(process, here, [])

    def give(self, batch: Batch) -> None:
        """Hand it files to check. A worker that is dead already is noticed when its answer is read."""
        self.batch = batch
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
        self.process.terminate()
        self.process.join(2)
        self.process.kill()
        self.process.join()
        self.pipe.close()

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


def _work(pipe: connection.Connection, other_end: connection.Connection, profiles: tuple[Profile, ...]) -> None:
    """The life of a worker: batches in, one result for each file out."""
    other_end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends us
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that clean-up code runs
    with contextlib.suppress(EOFError, OSError), quiet_collector() as collect:  # the parent has gone
        while (batch := _next(pipe)) is not None:
            for number, task in batch:
                pipe.send((number, _check(task, profiles)))
                collect(task.size)


def _next(pipe: connection.Connection) -> Batch | None:
    """The next batch; None when there is none, or nobody to report to."""
    parent = multiprocessing.parent_process()
    while not pipe.poll(5):
        if parent is None or not parent.is_alive():
            return None
    batch: Batch | None = pipe.recv()
    return batch


@contextlib.contextmanager
def quiet_collector() -> Iterator[Callable[[int], None]]:
    """Garbage collection only after every so many bytes of source; gives the function to count them with."""
    was_enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    since = 0

    def collect(size: int) -> None:
        nonlocal since
        since += size
        if since >= _BYTES_PER_COLLECTION:
            gc.collect()
            since = 0

    try:
        yield collect
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def _batches(tasks: Sequence[Task], workers: int) -> list[Batch]:
    """Largest files first, in batches of about a fortieth of a worker's share."""
    total = sum(task.size for task in tasks)
    share = max(1, total // (workers * 40))
    batches: list[Batch] = []
    filled = share
    for number, task in sorted(enumerate(tasks), key=lambda item: (-item[1].size, item[0])):
        if filled >= share:
            batches.append([])
            filled = 0
        batches[-1].append((number, task))
        filled += task.size + 500  # an empty file is some work, too
    return batches


def _warm_up() -> None:
    """Import what the workers need."""
    from torchmemlint.engine import audit, checking, one_file

    audit.catalogue()
    one_file.is_relevant(b"")
    del checking


def _can_fork() -> bool:
    return sys.platform == "linux" and "fork" in multiprocessing.get_all_start_methods()


def cpus() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
