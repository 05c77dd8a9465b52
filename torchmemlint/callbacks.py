"""Explaining an out-of-memory error from within a program: as a context manager, and as frameworks' callbacks.

    with explained():                                  # accelerate, and loops of your own
        main()

    Trainer(callbacks=[lightning_callback()])          # Lightning
    Trainer(model, ..., callbacks=[trainer_callback()])    # transformers

Each records the history of allocations, writes a snapshot when memory runs out, and prints the report of
`torchmemlint oom` to the error stream, with the findings in the files that ran.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchmemlint.post_mortem import ENTRIES, SNAPSHOT

if TYPE_CHECKING:
    from torchmemlint.runtime.record import Recording

StrPath = str | os.PathLike[str]


@contextlib.contextmanager
def explained(
    snapshot: StrPath = SNAPSHOT, *, report: StrPath | None = None, entries: int = ENTRIES
) -> Iterator[Recording]:
    """Record the history of memory inside, and explain it at the end if memory ran out.

    `snapshot` is the file for the snapshot, and `entries` how many of the last events it keeps. `report` is a file
    for the report. Its ending says the format: .html, .json or .sarif, else text.
    """
    watch = _Watch(snapshot, report, entries)
    watch.begin()
    try:
        yield watch.made
    finally:
        watch.end()


def lightning_callback(snapshot: StrPath = SNAPSHOT, *, report: StrPath | None = None, entries: int = ENTRIES) -> Any:
    """A callback for Lightning's Trainer, of the package `lightning` or `pytorch_lightning`.

    It begins before the model goes to its device, and ends with the call of `fit`, `validate`, `test` or `predict`.
    Raises ImportError where neither is installed.
    """
    try:
        base = importlib.import_module("lightning.pytorch").Callback
    except ImportError:
        base = importlib.import_module("pytorch_lightning").Callback
    watch = _Watch(snapshot, report, entries)

    class Explaining(base):  # type: ignore[misc, valid-type]  # the framework may be absent
        """Says which lines had the memory when it runs out."""

        def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
            watch.begin()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            watch.end()

        def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
            watch.end()

    return Explaining()


def trainer_callback(snapshot: StrPath = SNAPSHOT, *, report: StrPath | None = None, entries: int = ENTRIES) -> Any:
    """A callback for the Trainer of transformers.

    It begins when it is made, because the Trainer moves the model when it is built. Training that fails ends none of
    the Trainer's callbacks: the report is then printed as the process ends. Raises ImportError where transformers is
    not installed.
    """
    import atexit

    base = importlib.import_module("transformers").TrainerCallback
    watch = _Watch(snapshot, report, entries)
    watch.begin()
    atexit.register(watch.end)

    class Explaining(base):  # type: ignore[misc, valid-type]  # the framework may be absent
        """Says which lines had the memory when it runs out."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            watch.begin()

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            watch.end()

    return Explaining()


class _Watch:
    """A recording that is explained once for each time that it was begun."""

    def __init__(self, snapshot: StrPath, report: StrPath | None, entries: int) -> None:
        from torchmemlint.runtime.record import Recording, file_of_rank

        self.made = Recording(file_of_rank(Path(snapshot)), entries)
        self._report = Path(report) if report is not None else None

    def begin(self) -> None:
        if not self.made.active:
            self.made.begin()

    def end(self) -> None:
        if self.made.active:
            from torchmemlint.cli.explaining import explain

            self.made.end()
            explain(self.made, self._report)
