"""The process that checks files for one thread of a Dask worker: messages by its standard input, results by its output.

It is a process of its own because one that dies, or is ended for what it takes, then costs a file and not a worker, as
in a run on one machine; and because a worker's threads would take turns.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

from torchmemlint.engine import context
from torchmemlint.engine.cluster import stamp
from torchmemlint.engine.cluster.sources import Sources
from torchmemlint.engine.garbage import quiet_collector
from torchmemlint.engine.one_file import check_file, is_fleeting
from torchmemlint.engine.watching import bounded_memory


def main() -> None:
    """Answer until there are no more messages."""
    messages, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a plugin prints is no answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us is interrupted, and closes our input
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    try:
        _serve(messages, answers)
    except (EOFError, BrokenPipeError):  # nobody to answer to
        sys.exit(0)


def _serve(messages: BinaryIO, answers: BinaryIO) -> None:
    def answer(value: Any) -> None:
        pickle.dump(value, answers, protocol=5)
        answers.flush()

    sources: Sources | None = None
    with quiet_collector() as collect:
        while True:
            kind, *rest = pickle.load(messages)
            match kind:
                case "stamp":
                    answer(_stamp(*rest))
                case "sources":
                    sources = Sources.unpack(*rest)
                    context.forget()
                    context.put(Path(sources.root), sources.files())
                case _:
                    assert sources is not None
                    path, profile = rest
                    data = sources.contents[path]
                    with bounded_memory(profile.limits):
                        result = check_file(Path(path), profile, data)
                    ends = is_fleeting(result)  # what is half worked out serves no other file
                    answer((pickle.dumps(result, protocol=5), ends))
                    if ends:
                        return
                    collect()


def _watch(parent: int) -> None:
    """End this process when the one that started it is gone: a file may take long that nobody waits for."""
    while os.getppid() == parent:
        time.sleep(2)
    os._exit(0)


def _stamp(plugins: tuple[str, ...]) -> Any:
    try:
        return dict(stamp.own(plugins))
    except Exception as error:  # noqa: BLE001 (what a plugin raises is told to whoever asked)
        return str(error)
