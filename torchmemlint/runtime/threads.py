"""The program's own threads: each runs inside what measures the thread that began it. Knows nothing of torch.

torch's modes hold for the thread that entered them. A program that trains in a worker would else seem to allocate
nothing.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from torchmemlint.runtime.loops import StopRun


@contextlib.contextmanager
def following_threads(entering: Callable[[], contextlib.AbstractContextManager[object]]) -> Iterator[None]:
    """Until it is left, each thread that is started runs within what `entering` gives; this package's own do not."""
    original = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if not type(thread).__module__.startswith(f"{__package__}."):
            run = thread.run

            def watched() -> None:
                with contextlib.suppress(StopRun), entering():
                    run()

            thread.run = watched  # type: ignore[method-assign]
        original(thread)

    threading.Thread.start = start  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        threading.Thread.start = original  # type: ignore[method-assign]
