"""A thread that ends a run whose program does not: stuck in compiled code, it hears neither signals nor exceptions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

_POLL = 0.2
_GRACE = 3.0
"""Seconds that a program has to end, beyond its own limit, and again after it was told to."""
TIME = "time"
OTHERS = "others"
"""Why a run is ended: its time is over, or another rank has ended."""


class Guard(threading.Thread):
    """Watches the time, and for the file that says that the run shall end.

    First the program is told to `stop`. If it has not been over after that, `leave` is to write what there is and to
    end the process; while the program's thread is within compiled code, which alone keeps it from stopping, nothing
    is made or freed in Python.
    """

    def __init__(
        self, leave_file: Path, seconds: float, stop: Callable[[str], None], leave: Callable[[], None]
    ) -> None:
        super().__init__(name="torchmemlint guard", daemon=True)
        self._file = leave_file
        self._deadline = time.monotonic() + seconds + _GRACE
        self._stop_program = stop
        self._leave = leave
        self._over = threading.Event()

    def over(self) -> None:
        """The program has ended."""
        self._over.set()

    def _told(self) -> str | None:
        """Why the file says that the run shall end; None where it is not there."""
        try:
            return self._file.read_text(encoding="utf-8") or OTHERS
        except OSError:
            return None

    def run(self) -> None:
        """Wait until there is something to do."""
        why = None
        while why is None:
            if self._over.wait(_POLL):
                return
            why = TIME if time.monotonic() > self._deadline else self._told()
        self._stop_program(why)
        if not self._over.wait(_GRACE):
            self._leave()
