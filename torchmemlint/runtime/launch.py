"""The parent's side of a measured run: a fresh process, its environment, its limits, and what is left of it.

A child is the leader of its own group of processes, so that loaders' workers end with it, whatever happens.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from torchmemlint.runtime.order import Order, Program
from torchmemlint.runtime.results import End, RunResult

GRACE = 20.0
"""Seconds beyond its own limit that a child has to write its result; and, after that, to end."""
_POLL = 0.05
_TAIL = 4000  # characters of the error stream that are kept

Progress = Callable[[int], None]
"""Is told now and then how many steps (of all optimizers and loaders) a run has made."""

_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",  # the order of sets is part of what a program does
    "PYTHONUNBUFFERED": "1",
    "MPLBACKEND": "Agg",  # no windows that wait for somebody
    "WANDB_MODE": "disabled",  # no records of these runs in anybody's account
}
_BESIDE_OTHERS = {"OMP_WAIT_POLICY": "PASSIVE"}  # threads that wait leave the processor to others


def missing_torch() -> str | None:
    """What to tell a user who has no torch; None where it can be imported. Does not import it."""
    from importlib.util import find_spec

    if find_spec("torch") is not None:
        return None
    return "needs torch: pip install 'torchmemlint[verify]'"


def import_torch() -> None:
    """Import torch without its remark that there is no numpy, which nothing here uses."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Failed to initialize NumPy")
        importlib.import_module("torch")


def environment(*, beside_others: bool = False) -> dict[str, str]:
    """The child's: the user's own, and what makes runs alike; what the user has set stays."""
    return {**_ENVIRONMENT, **(_BESIDE_OTHERS if beside_others else {}), **os.environ}


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """A private folder for the files of runs."""
    with tempfile.TemporaryDirectory(prefix="torchmemlint-") as folder:
        yield Path(folder)


def order_for(program: Program, folder: Path, **settings: Any) -> Order:
    """An order for a program, with a folder of its own below a workspace."""
    private = Path(tempfile.mkdtemp(dir=folder))
    return Order(program, str(private), tuple(str(root) for root in program.roots()), **settings)


def launch(order: Order, progress: Progress | None = None) -> RunResult:
    """Carry out one order in a fresh process. Ctrl-C ends the child and is raised here again."""

    def made(number: int, steps: int) -> None:
        if progress is not None:
            progress(steps)

    return launch_all([order], 1, lambda number: None, made, lambda number: None)[0]


def launch_all(
    orders: Sequence[Order],
    at_once: int,
    begins: Callable[[int], None],
    made: Callable[[int, int], None],
    ends: Callable[[int], None],
) -> list[RunResult]:
    """Carry out orders in fresh processes, begun in their order, so many at once.

    `begins` and `ends` hear which order does, `made` how many steps it has made. All of it happens in this thread, so
    that Ctrl-C is raised here, and ends all the children.
    """
    waiting = list(reversed(list(enumerate(orders))))
    running: dict[int, _Child] = {}
    results: dict[int, RunResult] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                number, order = waiting.pop()
                begins(number)
                running[number] = _Child(order, beside_others=at_once > 1)
            next(iter(running.values())).pause()
            for number, child in list(running.items()):
                steps = child.new_steps()
                if steps is not None:
                    made(number, steps)
                if child.is_over():
                    child.end()
                    results[number] = running.pop(number).result()
                    ends(number)
        return [results[number] for number in range(len(orders))]
    finally:
        for child in running.values():
            child.kill()
        for child in running.values():
            child.end()


class _Child:
    """A process that carries out an order."""

    def __init__(self, order: Order, *, beside_others: bool) -> None:
        self._order = order
        self._folder = Path(order.folder)
        self._told = -1
        self._in_time = True
        self._written: float | None = None  # when its result was seen
        self._deadline = time.monotonic() + order.seconds + GRACE
        file = self._folder / "order.json"
        order.write(file)
        with (self._folder / "stdout").open("wb") as out, (self._folder / "stderr").open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("child.py")), str(file)],
                cwd=order.program.elsewhere or order.program.directory,
                env=environment(beside_others=beside_others),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def pause(self) -> None:
        """Wait a moment, or until it ends."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_POLL)

    def new_steps(self) -> int | None:
        """How many steps it has made, where that has changed."""
        with contextlib.suppress(OSError, ValueError):
            steps = int(self._order.progress_file.read_text(encoding="utf-8"))
            if steps != self._told:
                self._told = steps
                return steps
        return None

    def is_over(self) -> bool:
        """Whether it has ended, or has written its result and does not end, or is over its time."""
        if self._process.poll() is not None:
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
        _tidy(self._order.made_file)

    def result(self) -> RunResult:
        """What it did, when it has ended."""
        order, errors = self._order, self._folder / "stderr"
        if order.result_file.exists():
            result = RunResult.read(order.result_file)
            if result.end is not End.FAILED or result.traceback:
                return result
            return replace(result, traceback=_tail(errors))
        code, tail = self._process.returncode, _tail(errors)
        late = f"it did not stop within {order.seconds + GRACE:.0f} s"
        error = _how_it_ended(code, tail) if self._in_time else late
        return RunResult(End.KILLED, error, tail, code, order.backend, tracked=order.tracked, seed=order.seed)


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
