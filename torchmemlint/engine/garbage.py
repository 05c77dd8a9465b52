"""Garbage collection only where it is worth its while."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator

_MOST_UNCOLLECTED = 800_000  # objects, some 60 MB: of reference cycles, and of what is kept of a project


@contextlib.contextmanager
def quiet_collector() -> Iterator[Callable[[], None]]:
    """Collect nothing by itself; gives the function that looks whether it is worth its while.

    Nearly all is let go of by reference counts, and looking through all that lives takes a tenth of a second and more.
    Python counts the objects that were made since the last collection and have not been let go of.
    """
    was_enabled = gc.isenabled()
    gc.disable()

    def collect() -> None:
        if gc.get_count()[0] >= _MOST_UNCOLLECTED:
            gc.collect()

    try:
        with set_aside():
            yield collect
        with set_aside():  # what lives is not young any more: it need not be looked through once the collector is back
            pass
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def set_aside() -> Iterator[None]:
    """Keep the collector from what lives now."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
