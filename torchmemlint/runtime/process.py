"""A process that carries out an order: the leader of its own group, so that loaders' workers end with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import IO

from torchmemlint.runtime.order import Order
from torchmemlint.runtime.results import End, RunResult
from torchmemlint.runtime.several import with_processes

GRACE = 20.0
"""Seconds beyond its own limit that a child has to write its result; and, after that, to end."""
WITH_OTHERS = "it was ended, because another rank had ended before"
_POLL = 0.05
_TAIL = 4000  # characters of the error stream that are kept

_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",  # the order of sets is part of what a program does
    "PYTHONUNBUFFERED": "1",
    "MPLBACKEND": "Agg",  # no windows that wait for somebody
    "WANDB_MODE": "disabled",  # no records of these runs in anybody's account
}
_BESIDE_OTHERS = {"OMP_WAIT_POLICY": "PASSIVE"}  # threads that wait leave the processor to others
_OF_SEVERAL = {"OMP_NUM_THREADS": "1"}  # as torchrun sets it


def environment(order: Order, *, beside_others: bool = False) -> dict[str, str]:
    """The child's: the user's own, and what makes runs alike; what the user has set stays, but for what tells ranks."""
    several = order.program.processes > 1
    more = {**(_BESIDE_OTHERS if beside_others or several else {}), **(_OF_SEVERAL if several else {})}
    return {**_ENVIRONMENT, **more, **os.environ, **order.environment}


class Child:
    """A process that carries out an order."""

    def __init__(self, order: Order, *, beside_others: bool) -> None:
        self._order = order
        self._folder = Path(order.folder)
        self.told = -1  # the steps that were seen last
        self._in_time = True
        self._seen = 0.0  # when it was seen to have ended by itself, in seconds since 1970
        self._written: float | None = None  # when its result was seen
        self._deadline = time.monotonic() + order.seconds + GRACE
        order.write(order.file)
        self._told_up_to = dict.fromkeys(("stdout", "stderr"), 0)
        with (self._folder / "stdout").open("wb") as out, (self._folder / "stderr").open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("child.py")), str(order.file)],
                cwd=order.program.elsewhere or order.program.directory,
                env=environment(order, beside_others=beside_others),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def pause(self) -> None:
        """Wait a moment, or until it ends."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_POLL)

    def new_steps(self) -> int | None:
        """How many steps it has made, where that has changed."""
        for file in (self._order.progress_file, *self._folder.glob("rank-*/progress")):
            with contextlib.suppress(OSError, ValueError):
                steps = int(file.read_text(encoding="utf-8"))
                if steps > self.told:
                    self.told = steps
                    return steps
        return None

    def new_output(self) -> bytes:
        """What it has written to its output and its error stream since this was asked last."""
        new = []
        for name, begin in self._told_up_to.items():
            with (self._folder / name).open("rb") as stream:
                stream.seek(begin)
                new.append(stream.read())
            self._told_up_to[name] = begin + len(new[-1])
        return b"".join(new)

    def is_over(self) -> bool:
        """Whether it has ended, or has written its result and does not end, or is over its time."""
        if self._process.poll() is not None:
            self._seen = self._seen or time.time()
            return True
        now = time.monotonic()
        if self._written is None and self._order.result_file.exists():
            self._written = now
        if self._written is not None:  # threads of the program may keep it alive
            return now > self._written + GRACE
        self._in_time = now <= self._deadline
        return not self._in_time

    def kill(self) -> None:
        """End what is left of it and of the processes that it began."""
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        elif self._process.poll() is None:
            self._process.kill()

    def end(self) -> None:
        """The same, and wait for it, and remove what it leaves behind."""
        self.kill()
        self._process.wait()
        for file in (self._order.made_file, *self._folder.glob("rank-*/made")):
            _tidy(file)

    def result(self) -> RunResult:
        """What it did, when it has ended."""
        began = [RunResult.read(file) for file in sorted(self._folder.glob("rank-*/result.json"), key=_number)]
        return with_processes(self._own_result(), began)

    def _own_result(self) -> RunResult:
        order, errors = self._order, self._folder / "stderr"
        if order.result_file.exists():
            result = RunResult.read(order.result_file)
            if result.end is not End.FAILED or result.traceback:
                return result
            return replace(result, traceback=_tail(errors))
        code, tail = self._process.returncode, _tail(errors)
        late = f"it did not stop within {order.seconds + GRACE:.0f} s"
        error = _how_it_ended(code, tail) if self._in_time else late
        if order.leave_file.exists():
            error = WITH_OTHERS
        return RunResult(
            End.KILLED,
            error,
            tail,
            exit_code=code,
            backend=order.backend,
            tracked=order.tracked,
            seed=order.seed,
            ended=self._seen,
        )


def _number(file: Path) -> int:
    return int(file.parent.name.removeprefix("rank-"))


def _tidy(made: Path) -> None:
    """Remove the checkpoints that a run made anew, and the folders for them if nothing else is in them (`aside.py`)."""
    if not made.exists():
        return
    paths = set(filter(None, made.read_text(encoding="utf-8").split("\0")))
    for path in sorted(paths, key=len, reverse=True):
        with contextlib.suppress(OSError):
            if path.endswith(os.sep):
                Path(path).rmdir()
            else:
                Path(path).unlink()


def _tail(path: Path) -> str:
    with path.open("rb") as stream:
        return _last(stream).decode("utf-8", "replace")


def _last(stream: IO[bytes]) -> bytes:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - _TAIL, 0))
    return stream.read()


def _how_it_ended(code: int, tail: str) -> str:
    """One line about a child that left no result."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        hint = " (out of memory?)" if name == "SIGKILL" else ""
        return f"the process was ended by {name}{hint}"
    lines = [line for line in tail.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"the process ended with code {code} and left no result"
