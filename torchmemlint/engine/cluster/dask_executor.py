"""This machine's end of a Dask cluster: projects go out, results come in as they are ready.

Dask runs a task again elsewhere where its worker is lost. What was lost with several workers it gives up
(`KilledWorker`), with tasks that only waited on the same workers. So the files of such tasks are checked again when all
else is done, one by one, and one that takes its workers along even then is reported as unreadable (TML000).

After a loss, scheduler and workers may come to disagree: the one waits for a task that no other knows of. Where no
result comes, the workers are asked, and what none of them has is handed out anew.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import dask
import distributed

from torchmemlint.engine.cluster import remote, stamp
from torchmemlint.engine.cluster.sources import TooLargeError, gather
from torchmemlint.engine.one_file import (
    FileResult,
    Profile,
    check_file,
    is_concerned,
    is_passed_over,
    may_be_relevant,
    most_to_read,
    not_checked,
)
from torchmemlint.engine.pool import Task
from torchmemlint.immutable import immutable
from torchmemlint.source.decoding import UnreadableFile, read

CONNECTING = 5.0  # seconds
PATIENCE = 60.0  # seconds without any worker
_BYTES_PER_BATCH = 300_000  # about a second
_BATCHES_PER_THREAD = 4  # that are with the cluster at a time: some are checked while others travel
_PAUSE = 0.02  # seconds between looks at what has come
_LOOK = 1.0  # seconds between looks at the cluster
_SILENCE = 5.0  # seconds without a result after which the workers are asked whether they have anything to do
_ATTEMPTS = 5  # to hand out again what the workers know nothing of


class ClusterError(Exception):
    """The cluster cannot do it; the message says why."""


@dataclass(slots=True, eq=False)
class _Parcel:
    """A project's sources."""

    name: str
    packed: bytes
    future: Any  # of `remote.carried`


@immutable()
class _Batch:
    """Files of one project: their numbers and paths, and the numbers of their profiles."""

    parcel: _Parcel
    files: tuple[tuple[int, str, int], ...]


@contextlib.contextmanager
def connected(address: str, plugins: tuple[str, ...] = (), patience: float = PATIENCE) -> Iterator[DaskExecutor]:
    """An executor on the cluster whose scheduler has this address, such as `tcp://host:8786`. `plugins` brings rules.

    Raises `ClusterError` where it cannot be reached, has no workers, or would not find what is found here.
    """
    loud = logging.getLogger("distributed")
    level = loud.level
    loud.setLevel(logging.CRITICAL)  # what it has to say of lost connections is said by us
    quiet = {"distributed.admin.large-graph-warning-threshold": "100GB"}  # sources are large
    try:
        with dask.config.set(quiet), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of packages that differ: `stamp` knows which matter
            client = _client(address)
            try:
                executor = DaskExecutor(client, patience)
                executor.compare(plugins)
                yield executor
            finally:
                with contextlib.suppress(Exception):
                    client.close(timeout=2)
    finally:
        loud.setLevel(level)


def _client(address: str) -> Any:
    connect: Any = distributed.Client
    try:
        return connect(address, timeout=CONNECTING, set_as_default=False, name="torchmemlint")
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise ClusterError(f"no Dask scheduler answers at {address} ({reason[:200]})") from None


class DaskExecutor:
    """Checks files on a cluster. To be used by one thread."""

    def __init__(self, client: Any, patience: float) -> None:
        self._client = client
        self._patience = patience

    @property
    def threads(self) -> int:
        """How many there are now."""
        return int(sum(self._client.nthreads().values()))

    def compare(self, plugins: tuple[str, ...]) -> None:
        """Wait for a worker, and hold all there are against this machine. Raises `ClusterError`."""
        try:
            self._client.wait_for_workers(1, timeout=self._patience)
        except TimeoutError:
            raise ClusterError(f"the cluster had no workers for {self._patience:.0f} s") from None
        pythons = {
            address: str(told["host"]["python"]).split(".")[:2]
            for address, told in self._client.get_versions()["workers"].items()
        }
        here = distributed.versions.get_versions()["host"]["python"].split(".")[:2]
        for address, python in pythons.items():
            if python != here:
                raise ClusterError(f"the worker {address} has Python {'.'.join(python)}, and here is {'.'.join(here)}")
        own = stamp.own(plugins)

        def told() -> Any:  # within a function: pickled with its code, since a worker may not have ours
            try:
                from torchmemlint.engine.cluster import stamp
            except ImportError as error:
                return f"torchmemlint cannot be imported there ({error})"
            try:
                return dict(stamp.own(plugins))
            except Exception as error:  # noqa: BLE001 (a plugin's)
                return str(error)

        for address, answer in self._client.run(told).items():
            found = stamp.differences(own, answer) if isinstance(answer, dict) else [answer]
            if found:
                raise _mismatch(f"the worker {address}", "; ".join(found))

    def __call__(
        self, tasks: Sequence[Task], profiles: Sequence[Profile], progress: Callable[[int], None]
    ) -> list[FileResult]:
        """Check all files; the results are in the order of `tasks`. Raises `ClusterError`."""
        run = _Run(self._client, self._patience, tasks, profiles, progress)
        run.complete()
        return [run.results[number] for number in range(len(tasks))]


@dataclass(slots=True)
class _Run:
    client: Any
    patience: float
    tasks: Sequence[Task]
    profiles: Sequence[Profile]
    progress: Callable[[int], None]
    results: dict[int, FileResult] = field(default_factory=dict)
    _flying: dict[Any, _Batch] = field(default_factory=dict)  # by future
    _suspects: list[_Batch] = field(default_factory=list)
    _threads: int = 1
    _looked: float = 0.0
    _heard: float = field(default_factory=time.monotonic)  # when a result came, or there was word of work
    _attempts: int = 0
    _served: float = field(default_factory=time.monotonic)  # when there was a worker for the last time

    def complete(self) -> None:
        """Check all of it."""
        try:
            self._fly(self._batches(), lambda: max(1, self._threads) * _BATCHES_PER_THREAD, self._suspect)
            alone = [
                _Batch(batch.parcel, (file,))
                for batch in sorted(self._suspects, key=lambda batch: batch.files)
                for file in batch.files
            ]
            self._fly(iter(alone), lambda: 1, self._give_up)
        finally:
            if self._flying:  # left early
                with contextlib.suppress(Exception):
                    self.client.cancel(list(self._flying), force=True)

    def _fly(self, batches: Iterator[_Batch], most: Callable[[], int], killed: Callable[[_Batch], None]) -> None:
        """Keep so many batches with the cluster until all are done."""
        waiting: Any = distributed.as_completed
        ready = waiting([], with_results=True, raise_errors=False, loop=self.client.loop)
        batch = next(batches, None)
        while batch is not None or self._flying:
            self._look()
            if self._is_stuck():
                for future in self._anew():
                    ready.add(future)
            while batch is not None and len(self._flying) < most():
                ready.add(self._submit(batch))
                batch = next(batches, None)
            landed = ready.next_batch(block=False)
            for future, outcome in landed:
                landing = self._flying.pop(future, None)
                if landing is None:
                    continue  # it was handed out anew
                if future.status in ("finished", "error"):
                    self._take_in(future, landing, outcome, killed)
                    self._attempts = 0
                else:
                    ready.add(self._once_more(landing))
                self._heard = time.monotonic()
            if not landed:
                time.sleep(_PAUSE)

    def _take_in(self, future: Any, batch: _Batch, outcome: Any, killed: Callable[[_Batch], None]) -> None:
        if future.status == "finished":
            for number, result in outcome:
                self._keep(number, pickle.loads(result))
        elif isinstance(outcome[1], distributed.scheduler.KilledWorker):
            killed(batch)
        else:
            error = outcome[1]
            if isinstance(error, remote.MismatchError | ImportError):
                raise _mismatch("a worker", str(error))
            raise ClusterError(f"a task failed at the cluster: {type(error).__name__}: {error}") from error

    def _once_more(self, batch: _Batch) -> Any:
        """Hand out what the scheduler let go of: it was restarted, or no worker has the result any more."""
        why = "the connection to the scheduler was lost, or it has let go of the run's tasks"
        if self.client.status != "running":
            raise ClusterError(why)
        return self._again([batch], why)[0]

    def _keep(self, number: int, result: FileResult) -> None:
        self.results[number] = result
        self.progress(len(self.results))

    def _suspect(self, batch: _Batch) -> None:
        self._suspects.append(batch)

    def _give_up(self, batch: _Batch) -> None:
        for number, path, profile in batch.files:
            why = "Not checked: again and again, the worker of the cluster that had it in hand was lost"
            self._keep(number, not_checked(Path(path), why, self.profiles[profile]))

    def _look(self) -> None:
        """See how many threads there are. Raises where there has been none for long, or nobody answers."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        if self.client.status != "running":
            raise ClusterError("the connection to the scheduler was lost")
        self._threads = sum(self.client.nthreads().values())
        if self._threads:
            self._served = now
        elif now - self._served > self.patience:
            raise ClusterError(f"the cluster had no workers for {self.patience:.0f} s")

    def _is_stuck(self) -> bool:
        """Does no worker know of any work, although there is some?"""
        if not self._flying or not self._threads or time.monotonic() - self._heard < _SILENCE:
            return False
        self._heard = time.monotonic()
        return not any(self.client.run(_has_work, on_error="ignore").values())

    def _anew(self) -> list[Any]:
        """Hand out again all that was handed out."""
        batches = list(self._flying.values())
        self.client.cancel(list(self._flying), force=True)
        self._flying.clear()
        return self._again(batches, "the cluster does not work on what it is given")

    def _again(self, batches: Sequence[_Batch], why: str) -> list[Any]:
        """Hand out batches and their sources under other names; not for ever, and `why` is the error then."""
        self._attempts += 1
        if self._attempts > _ATTEMPTS:
            raise ClusterError(why)
        for parcel in {id(batch.parcel): batch.parcel for batch in batches}.values():
            parcel.future = self._carry(parcel.packed)
        return [self._submit(batch) for batch in batches]

    def _carry(self, packed: bytes) -> Any:
        return self.client.submit(remote.carried, packed, key=_key("sources"), pure=False)

    def _submit(self, batch: _Batch) -> Any:
        numbers = sorted({profile for *_, profile in batch.files})
        files = [(number, path, numbers.index(profile)) for number, path, profile in batch.files]
        chosen = [self.profiles[number] for number in numbers]
        own = {one.plugins: stamp.own(one.plugins) for one in chosen}
        parcel = batch.parcel
        future = self.client.submit(
            remote.check, parcel.name, parcel.future, files, chosen, own, key=_key("check"), pure=False
        )
        self._flying[future] = batch
        return future

    def _batches(self) -> Iterator[_Batch]:
        """The files by project, largest first. Those that are told at once from what is in them are not among them."""
        numbered = sorted(enumerate(self.tasks), key=lambda item: (str(self._root(item[1])), -item[1].size, item[0]))
        for root, items in groupby(numbered, key=lambda item: self._root(item[1])):
            contents: dict[Path, bytes] = {}
            wanted: list[tuple[int, Task]] = []
            for number, task in items:
                data = self._read(number, task)
                if data is not None:
                    contents[task.path] = data
                    wanted.append((number, task))
            if wanted:
                yield from self._of_project(root, wanted, contents)

    def _root(self, task: Task) -> Path:
        return self.profiles[task.profile].root or task.path.parent

    def _read(self, number: int, task: Task) -> bytes | None:
        """The contents of a file; None where its result is known without the cluster."""
        profile = self.profiles[task.profile]
        most = most_to_read(task.path, profile)
        try:
            data = read(task.path, most) if task.data is None else task.data
        except UnreadableFile:
            self._keep(number, check_file(task.path, profile))
            return None
        relevant = may_be_relevant(data, task.path, profile.contracts) or is_concerned(data, task.path, profile)
        if (most is not None and len(data) >= most) or is_passed_over(data, relevant):
            self._keep(number, check_file(task.path, profile, data))
            return None
        return data

    def _of_project(
        self, root: Path, wanted: Sequence[tuple[int, Task]], contents: dict[Path, bytes]
    ) -> Iterator[_Batch]:
        try:
            packed = gather(root, contents.items()).pack()
        except TooLargeError as error:
            raise ClusterError(f"{error}: list the projects in it with --projects-from") from None
        parcel = _Parcel(uuid.uuid4().hex, packed, self._carry(packed))
        files: list[tuple[int, str, int]] = []
        filled = 0
        for number, task in wanted:
            files.append((number, str(task.path), task.profile))
            filled += len(contents[task.path])
            if filled >= _BYTES_PER_BATCH:
                yield _Batch(parcel, tuple(files))
                files, filled = [], 0
        if files:
            yield _Batch(parcel, tuple(files))


def _has_work(dask_worker: Any) -> bool:
    """Has a worker anything to do? Dask gives it as the argument of that name."""
    return any(task.state not in ("memory", "released", "error") for task in dask_worker.state.tasks.values())


def _key(kind: str) -> str:
    """A name for a task that no other run has."""
    return f"torchmemlint-{kind}-{uuid.uuid4().hex}"


def _mismatch(who: str, difference: str) -> ClusterError:
    return ClusterError(f"{who} would not find the same as this machine: {difference}")
