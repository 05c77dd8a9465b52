"""What looks at a program and fails: the program goes on, and the report says how often. Knows nothing of torch.

Observers run inside the program's threads, at its steps, batches, backward passes and turns of loops. An error of
theirs is none of the program's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

_OWN = PurePath(__file__).parent


class Failures:
    """How often an observer failed, and what the first said: its error, and the innermost line of this package."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def tell(self, observers: Iterable[Callable[..., object]], *arguments: Any) -> None:
        """Call each observer; what one raises ends neither the others nor the program.

        Raises what is no `Exception`: the order to stop, Ctrl-C, the program's own end.
        """
        for observer in observers:
            with self.noted():
                observer(*arguments)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what the block raises, and go on behind it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (whatever goes wrong, it is not the program's)
            self.note(error)

    def note(self, error: Exception) -> None:
        """Count an error."""
        self.count += 1
        self.first = self.first or f"{_one_line(error)}{_place(error)}"


def _one_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _place(error: Exception) -> str:
    """Where in this package it happened, in brackets."""
    place, frame = "", error.__traceback__
    while frame is not None:
        file = PurePath(frame.tb_frame.f_code.co_filename)
        if file.is_relative_to(_OWN) and file != PurePath(__file__):
            place = f" ({file.relative_to(_OWN).as_posix()}:{frame.tb_lineno})"
        frame = frame.tb_next
    return place
