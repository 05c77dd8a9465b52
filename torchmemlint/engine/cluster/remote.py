"""What Dask runs on a worker. Results are given back as bytes, so that only the client makes objects of them."""

from __future__ import annotations

import contextlib
import json
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchmemlint.engine.cluster.stamp import Stamp, differences
from torchmemlint.engine.one_file import FileResult, Profile, passed_over
from torchmemlint.engine.pool import GRACE, obituary
from torchmemlint.engine.watching import too_long

PATIENCE = 30.0  # seconds after which a process that has nothing to do is ended
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from torchmemlint.engine.cluster.child import main; main()"
)


class MismatchError(Exception):
    """The worker would not find what the client would; the message says what differs."""


def carried(sources: bytes) -> bytes:
    """The sources of a project: a task, so that Dask can make them anew where the worker that had them is lost."""
    return sources


def check(
    name: str,
    sources: bytes,
    files: Sequence[tuple[int, str, int]],
    profiles: Sequence[Profile],
    client: Mapping[tuple[str, ...], Stamp],
) -> list[tuple[int, bytes]]:
    """Check files of a project: for each its number, its path and the number of its profile. Gives numbers and results.

    `name` is that of the sources; `client` is the client's stamp, by what brings rules. What comes out depends on the
    arguments alone, and nothing is left behind: this may run any number of times. Raises `MismatchError`.
    """
    results = []
    child: _Child | None = None
    try:
        for number, path, profile in files:
            child = child or _take()
            result, alive = _checked(child, path, profiles[profile], name, sources, client)
            results.append((number, result))
            if not alive:
                child = None
        if child is not None:
            _IDLE.give_back(child)
            child = None
    finally:
        if child is not None:
            child.end()
    return results


def _checked(
    child: _Child, path: str, profile: Profile, name: str, sources: bytes, client: Mapping[tuple[str, ...], Stamp]
) -> tuple[bytes, bool]:
    """The pickled result for a file, and whether the process is to be asked again."""
    try:
        child.prepare(name, sources, profile.plugins, client)
        result, ends = child.checked(path, profile)
    except (EOFError, OSError, pickle.UnpicklingError):  # it died on this file
        return pickle.dumps(child.obituary(path, profile), protocol=5), False
    if ends:
        child.end()
    return result, not ends


class _Child:
    """A process that checks files, and what it has been told."""

    def __init__(self) -> None:
        path = json.dumps(sys.path)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, "-c", _START, path], stdin=pipe, stdout=pipe)
        self._given_up = False  # was it ended for the time that it took?
        self._sources = ""
        self._alike: set[tuple[object, ...]] = set()  # stamps of clients that it has been held against

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def prepare(
        self, name: str, sources: bytes, plugins: tuple[str, ...], client: Mapping[tuple[str, ...], Stamp]
    ) -> None:
        """Make sure that it has the sources of that name, and the same rules as the client."""
        alike = (plugins, *sorted(client[plugins].items()))
        if alike not in self._alike:
            told = self._ask("stamp", plugins)
            found = differences(client[plugins], told) if isinstance(told, dict) else [told]
            if found:
                raise MismatchError("; ".join(found))
            self._alike.add(alike)
        if name != self._sources:
            self._tell("sources", sources)
            self._sources = name

    def checked(self, path: str, profile: Profile) -> tuple[bytes, bool]:
        """The pickled result for a file, and whether the process ends with it. Raises EOFError or OSError where it
        dies, or is ended as the file takes too long.
        """
        most = profile.limits.time
        timer = threading.Timer(most + GRACE, self._give_up) if most else None
        try:
            if timer is not None:
                timer.start()
            result: tuple[bytes, bool] = self._ask("check", path, profile)
            return result
        finally:
            if timer is not None:
                timer.cancel()

    def obituary(self, path: str, profile: Profile) -> FileResult:
        """What there is to say of the file on which it died."""
        told = self.end()
        if self._given_up:
            return passed_over(Path(path), too_long(profile.limits), profile)
        return FileResult(Path(path), error=told)

    def _give_up(self) -> None:
        self._given_up = True
        self._process.kill()

    def end(self) -> str:
        """End it, and say how it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            code = self._process.wait(0.2)  # it is dead, or at leisure
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._process.stdout.close()
        return obituary(code)

    def _ask(self, *message: Any) -> Any:
        self._tell(*message)
        assert self._process.stdout is not None
        return pickle.load(self._process.stdout)

    def _tell(self, *message: Any) -> None:
        assert self._process.stdin is not None
        pickle.dump(message, self._process.stdin, protocol=5)
        self._process.stdin.flush()


class _Idle:
    """Processes that wait for work, for a while."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, _Child]] = []  # since when; the last one comes last
        self._lock = threading.Lock()

    def take(self) -> _Child | None:
        with self._lock:
            while self._waiting:
                _, child = self._waiting.pop()
                if child.is_alive:
                    return child
                child.end()
        return None

    def give_back(self, child: _Child) -> None:
        with self._lock:
            self._waiting.append((time.monotonic(), child))
        timer = threading.Timer(PATIENCE + 0.1, self._end_old)
        timer.daemon = True
        timer.start()

    def _end_old(self) -> None:
        with self._lock:
            old = [child for since, child in self._waiting if time.monotonic() - since >= PATIENCE]
            self._waiting = [one for one in self._waiting if time.monotonic() - one[0] < PATIENCE]
        for child in old:
            child.end()


_IDLE = _Idle()


def _take() -> _Child:
    return _IDLE.take() or _Child()
