"""What `_record_memory_history` writes down, for snapshots of simulated GPUs.

Events and call stacks are as torch gives them, with Python frames only, but for the workspaces of libraries. A backward
runs on the calling thread here, so that its allocations have the line that called `backward()`, which those of a real
GPU have not.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from torchmemlint.runtime.simulated.allocator import CachingAllocator

_OWN = f"{Path(__file__).parent.parent.parent.absolute()}{os.sep}"

_WORKSPACES = str(Path(__file__).parent.absolute() / "workspaces.py")

Frame = dict[str, Any]
_WORKSPACE: Frame = {"name": "at::cuda::getNewWorkspace()", "filename": "??", "line": 0}  # as torch's stacks tell it
Observer = Callable[[int, int, int, int], None]


class Histories:
    """The histories of all devices, and who wants to be told when memory runs out."""

    def __init__(self, allocators: Sequence[CachingAllocator]) -> None:
        self._allocators = allocators
        self._observers: list[Observer] = []
        self._traces: list[deque[dict[str, Any]]] = [deque() for _ in allocators]
        self._frames: dict[tuple[str, int, str], Frame] = {}  # each once, as torch has them
        self._stacks: dict[tuple[int, ...], list[Frame]] = {}
        self._made: list[dict[int, list[Frame]]] = [{} for _ in allocators]  # by address
        for number, allocator in enumerate(allocators):
            allocator.out_of_memory = self._teller(number)

    def record(
        self,
        enabled: str | bool | None = "all",
        context: str | None = "all",
        stacks: str = "all",
        max_entries: int = sys.maxsize,
        device: Any = None,
        clear_history: bool = False,
        *_: Any,
        **__: Any,
    ) -> None:
        """As `torch.cuda.memory._record_memory_history`."""
        for number, allocator in enumerate(self._allocators):
            kept = () if clear_history or not enabled else self._traces[number]
            self._traces[number] = deque(kept, max(0, min(max_entries, sys.maxsize)))
            allocator.event = self._recorder(number, context, history=enabled != "state") if enabled else None

    def attach(self, observer: Observer) -> None:
        """As `torch._C._cuda_attach_out_of_memory_observer`."""
        self._observers.append(observer)

    def snapshot(self) -> dict[str, Any]:
        """As `torch._C._cuda_memorySnapshot`."""
        segments = []
        for allocator, made in zip(self._allocators, self._made, strict=True):
            for segment in allocator.snapshot():
                for block in segment["blocks"]:
                    if block["state"] == "active_allocated":
                        block["frames"] = made.get(block["address"], [])
                segments.append(segment)
        return {
            "segments": segments,
            "device_traces": [list(trace) for trace in self._traces],
            "allocator_settings": {"expandable_segments": False},
            "external_annotations": [],
        }

    def _recorder(self, number: int, context: str | None, *, history: bool) -> Callable[[str, int, int], None]:
        trace, made = self._traces[number], self._made[number]

        def write(action: str, address: int, nbytes: int) -> None:
            frames = self._stack() if context and (context == "all" or not action.startswith("free")) else []
            if action == "alloc":
                made[address] = frames
            elif action == "free_completed":
                made.pop(address, None)
            if not history:
                return
            event = {"action": action, "addr": address, "size": nbytes, "stream": 0, "time_us": time.time_ns() // 1000}
            event |= {"compile_context": "N/A", "user_metadata": "", "frames": frames}
            if action == "oom":
                allocator = self._allocators[number]
                del event["addr"]
                event["device_free"] = (allocator.limit or 0) - allocator.reserved
            trace.append(event)

        return write

    def _teller(self, number: int) -> Callable[[int], None]:
        allocator = self._allocators[number]

        def tell(nbytes: int) -> None:
            if allocator.event is not None:
                allocator.event("oom", 0, nbytes)
            for observer in self._observers:
                observer(number, nbytes, allocator.total or 0, (allocator.limit or 0) - allocator.reserved)

        return tell

    def _stack(self) -> list[Frame]:
        """The Python frames that run now, without ours, the innermost first."""
        found = []
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            if code.co_filename == _WORKSPACES and _WORKSPACE not in found:
                found.append(_WORKSPACE)
            if not code.co_filename.startswith((_OWN, "<frozen ")):
                key = code.co_filename, frame.f_lineno or 0, code.co_name
                known = self._frames.get(key)
                if known is None:
                    filename, line, name = key
                    known = self._frames[key] = {"name": name, "filename": filename, "line": line}
                found.append(known)
            frame = frame.f_back
        return self._stacks.setdefault(tuple(map(id, found)), found)
