"""A progress bar for long runs."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE = 1.0  # seconds before the bar appears


class ProgressBar:
    """Shows on the error stream how many of `total` files are done, once a run has taken a second."""

    def __init__(self, total: int, *, enabled: bool) -> None:
        self._total = total
        self._enabled = enabled
        self._start = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int) -> None:
        """`done` files are finished."""
        if not self._enabled:
            return
        if self._bar is None:
            if time.monotonic() - self._start < _PATIENCE or done == self._total:
                return
            self._bar, self._task = self._show()
        if self._task is not None:
            self._bar.update(self._task, completed=done)

    def _show(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("Checking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        bar = Progress(*columns, console=Console(file=sys.stderr), transient=True)
        bar.start()
        return bar, bar.add_task("", total=self._total)
