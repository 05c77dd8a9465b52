"""The parent's side of measured runs: each a fresh process, or several, begun, watched and gathered up."""

from __future__ import annotations

import contextlib
import importlib
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchmemlint.runtime.order import Order, Program
from torchmemlint.runtime.process import Child
from torchmemlint.runtime.ranks import Ranks
from torchmemlint.runtime.results import RunResult
from torchmemlint.runtime.torchrun import environment_of, free_port

Progress = Callable[[int], None]
"""Is told now and then how many steps (of all optimizers and loaders) a run has made."""
Output = Callable[[bytes], None]
"""Is given what a program writes to its output and its error stream."""


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


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """A private folder for the files of runs."""
    with tempfile.TemporaryDirectory(prefix="torchmemlint-") as folder:
        yield Path(folder)


def order_for(program: Program, folder: Path, **settings: Any) -> Order:
    """An order for a program, with a folder of its own below a workspace."""
    private = Path(tempfile.mkdtemp(dir=folder))
    return Order(program, str(private), tuple(str(root) for root in program.roots()), **settings)


def launch(order: Order, progress: Progress | None = None, output: Output | None = None) -> RunResult:
    """Carry out one order in a fresh process. Ctrl-C ends the child and is raised here again."""

    def made(number: int, steps: int) -> None:
        if progress is not None:
            progress(steps)

    return launch_all([order], 1, lambda number: None, made, lambda number: None, output)[0]


def launch_all(
    orders: Sequence[Order],
    at_once: int,
    begins: Callable[[int], None],
    made: Callable[[int, int], None],
    ends: Callable[[int], None],
    output: Output | None = None,
) -> list[RunResult]:
    """Carry out orders in fresh processes, begun in their order, so many at once.

    `begins` and `ends` hear which order does, `made` how many steps it has made. All of it happens in this thread, so
    that Ctrl-C is raised here, and ends all the children.
    """
    waiting = list(reversed(list(enumerate(orders))))
    running: dict[int, Child | Ranks] = {}
    results: dict[int, RunResult] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                number, order = waiting.pop()
                begins(number)
                running[number] = _begun(order, beside_others=at_once > 1)
            next(iter(running.values())).pause()
            for number, child in list(running.items()):
                steps = child.new_steps()
                if steps is not None:
                    made(number, steps)
                over = child.is_over()
                if over:
                    child.end()
                if output is not None and (written := child.new_output()):
                    output(written)
                if over:
                    results[number] = running.pop(number).result()
                    ends(number)
        return [results[number] for number in range(len(orders))]
    finally:
        for child in running.values():
            child.kill()
        for child in running.values():
            child.end()


def _begun(order: Order, *, beside_others: bool) -> Child | Ranks:
    if order.program.processes > 1:
        return Ranks(order, beside_others=beside_others)
    if order.program.processes == 1:
        order = replace(order, environment=environment_of(0, 1, free_port()))
    return Child(order, beside_others=beside_others)
