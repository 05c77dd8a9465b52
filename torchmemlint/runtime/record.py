"""Writes a memory snapshot when CUDA runs out of memory, for `torchmemlint oom`.

The history has the Python lines of allocations and of no frees, which is what costs least. The observer is called
before the error is raised, so that a program which catches it, and tries a smaller batch, has its snapshot, too.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import torch

from torchmemlint.post_mortem import ENTRIES, SNAPSHOT
from torchmemlint.runtime import internals

_MOST_WRITTEN = 3
"""Failures for which the file is written: a program may look for the largest batch that fits."""


class Recording:
    """What is recorded. `written` counts the snapshots that went to `file`; `on` is false where nothing is recorded."""

    def __init__(self, file: Path, entries: int) -> None:
        self.file = file
        self.entries = entries
        self.written = 0
        self.problem: str | None = None  # why the file could not be written
        self.on = False
        self.active = False
        self._observed = False  # an observer stays for good

    def begin(self) -> None:
        """Record from now on, if there is a GPU."""
        self.written, self.problem, self.active = 0, None, True
        self.on = torch.cuda.is_available() and internals.record_history(self.entries)
        if self.on and not self._observed:
            self.on = self._observed = internals.on_out_of_memory(self._out_of_memory)

    def _out_of_memory(self, device: int, requested: int, total: int, free: int) -> None:
        if not self.active or self.written >= _MOST_WRITTEN:
            return
        try:
            with self.file.open("wb") as file:
                pickle.dump(internals.snapshot(), file, protocol=4)
            self.written += 1
        except (OSError, RuntimeError) as error:  # the program's own error is what matters
            self.problem = str(error)

    def end(self) -> None:
        """Record no more."""
        self.active = False
        if self.on:
            internals.end_history()


def file_of_rank(file: Path) -> Path:
    """The file of this process: where there are several ranks, one for each."""
    rank = os.environ.get("RANK", "")
    alone = os.environ.get("WORLD_SIZE", "1") == "1" or not rank.isdigit()
    return file if alone else file.with_name(f"{file.stem}-rank{rank}{file.suffix}")


@contextlib.contextmanager
def recording(file: str | os.PathLike[str] = SNAPSHOT, *, entries: int = ENTRIES) -> Iterator[Recording]:
    """Record what happens inside, and write a snapshot to `file` when memory runs out: `with recording(): main()`.

    Without a GPU nothing is recorded.
    """
    made = Recording(file_of_rank(Path(file)), entries)
    made.begin()
    try:
        yield made
    finally:
        made.end()


def from_the_start_of_cuda(file: str | os.PathLike[str] = SNAPSHOT, *, entries: int = ENTRIES) -> Recording:
    """Record from the moment when CUDA starts to the end of the process; nothing in one that never uses it."""
    made = Recording(file_of_rank(Path(file)), entries)
    internals.when_cuda_starts(made.begin)
    return made
