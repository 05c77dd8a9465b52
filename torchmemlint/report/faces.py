"""The figures of each of several processes or GPUs, and that one ran out of memory, in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from torchmemlint.report.places import shown_place
from torchmemlint.runtime.results import End, RunResult
from torchmemlint.sizes import format_size


def faces(run: RunResult) -> Iterator[tuple[str, str]]:
    """A row for each process and GPU, with what it had; nothing where there is one of each."""
    found = run.faces
    for face in found if len(found) > 1 or run.ranks else ():
        where = f" on {face.device}" if face.device and face.device not in face.place else ""
        reserved = "" if face.peak_reserved is None else f" allocated, {format_size(face.peak_reserved)} reserved"
        parts = [f"peak {format_size(face.peak)}{reserved}{where}"]
        steepest = face.steepest
        if steepest is not None:
            parts.append(f"+{format_size(steepest.growth.bytes_per_step)} per step")
        if face.rank is not None:
            parts.append(f"{face.steps} steps")
        if face.end in (End.FAILED, End.KILLED):
            parts.append(f"{face.end.value}: {face.error}")
        yield face.place or "main", ", ".join(parts)


def out_of_memory(run: RunResult, root: Path) -> Iterator[Text]:
    """A line that says where memory ran out, if it did; paths as seen from `root`."""
    for face in run.ranks or (run,):
        if face.out_of_memory is None:
            continue
        path, _, line = face.out_of_memory.rpartition(":")
        where = f" at {shown_place(path, int(line), root)}" if path else ""
        rank = "" if face.rank is None else f" on rank {face.rank}"
        told = (face.error or "").partition(": ")[2] or "CUDA out of memory"
        yield Text.assemble((f"out of memory{where}{rank}: ", "bold red"), told)


def whose(run: RunResult) -> str:
    """Which of several the figures beside belong to, as a sentence goes on; empty where there is but one."""
    return f" ({run.place}, the most)" if len(run.faces) > 1 else ""
