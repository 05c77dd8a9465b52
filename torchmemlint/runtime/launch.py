"""The parent's side of a measured run: a fresh process, its environment, its limits, and what is left of it.

The child is the leader of its own group of processes, so that loaders' workers end with it, whatever happens.
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
from collections.abc import Callable, Iterator
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


def environment() -> dict[str, str]:
    """The child's: the user's own, and what makes runs alike; what the user has set stays."""
    return {**_ENVIRONMENT, **os.environ}


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
    folder = Path(order.folder)
    file = folder / "order.json"
    order.write(file)
    child = [sys.executable, str(Path(__file__).with_name("child.py")), str(file)]
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(
            child,
            cwd=order.program.elsewhere or order.program.directory,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            in_time = _wait(process, order, progress)
        finally:
            _end(process)
            _tidy(order.made_file)
    if order.result_file.exists():
        result = RunResult.read(order.result_file)
        if result.end is not End.FAILED or result.traceback:
            return result
        return replace(result, traceback=_tail(folder / "stderr"))
    tail = _tail(folder / "stderr")
    if not in_time:
        error = f"it did not stop within {order.seconds + GRACE:.0f} s"
    else:
        error = _how_it_ended(process.returncode, tail)
    return RunResult(End.KILLED, error, tail, process.returncode, order.backend, tracked=order.tracked, seed=order.seed)


def _wait(process: subprocess.Popen[bytes], order: Order, progress: Progress | None) -> bool:
    """Until the child ends, or has written its result and does not end; False when it is over time."""
    deadline = time.monotonic() + order.seconds + GRACE
    told = -1
    while True:
        try:
            process.wait(_POLL)
        except subprocess.TimeoutExpired:
            pass
        else:
            return True
        if progress is not None:
            with contextlib.suppress(OSError, ValueError):
                steps = int(order.progress_file.read_text(encoding="utf-8"))
                if steps != told:
                    told = steps
                    progress(steps)
        if order.result_file.exists():  # threads of the program may keep it alive
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
            return True
        if time.monotonic() > deadline:
            return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the child and of the processes that it began."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        process.kill()
    process.wait()


def _tidy(made: Path) -> None:
    """Remove the checkpoints that a run made anew (see `aside.py`)."""
    if made.exists():
        for path in made.read_text(encoding="utf-8").split("\0"):
            if path:
                Path(path).unlink(missing_ok=True)


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
