"""Small snapshots as `torch.cuda.memory._snapshot` gives them: a model of the allocator works, and is written down.

No GPU has made them. Torch's own reader (`torch.cuda._memory_viz`) must take them; the tests hold it to that.
"""

from __future__ import annotations

import struct
from typing import Any

from torchmemlint.runtime.simulated.allocator import Block, CachingAllocator, OutOfMemory

HOME = "/home/me/project/train.py"
MIB = 1 << 20
Frames = list[dict[str, Any]]

FORMATS = ("2.1", "2.5", "2.13")


def frame(line: int, name: str = "main", filename: str = HOME) -> dict[str, Any]:
    return {"filename": filename, "line": line, "name": name}


def native(name: str, filename: str = "??") -> dict[str, Any]:
    return {"name": name, "filename": filename, "line": 0}


TORCH = "/usr/lib/python3.12/site-packages/torch/"
CALL = frame(1775, "_call_impl", f"{TORCH}nn/modules/module.py")
OPTIMIZER = frame(533, "wrapper", f"{TORCH}optim/optimizer.py")
ENGINE = [
    native("c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)"),
    native("at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)"),
    native("torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)"),
]
MADE = [
    native("c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)"),
    native("at::_ops::linear::call(at::Tensor const&, at::Tensor const&)"),
]


class Recorder:
    """One device, whose allocator works as it is told and writes down what torch would."""

    def __init__(self, limit: int | None = None, device: int = 0, form: str = "2.13") -> None:
        self.model = CachingAllocator(limit, device=device)
        self.events: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.form = form
        self._frames: dict[int, Frames] = {}
        self._segments: dict[int, tuple[int, Frames]] = {}
        self._time = 1_700_000_000_000_000

    def _event(self, action: str, address: int | None, size: int, frames: Frames, **more: Any) -> None:
        event: dict[str, Any] = {"action": action}
        if address is not None:
            event["addr"] = address
        event |= {"size": size, "stream": 0, **more}
        if self.form != "2.1":
            event["time_us"] = self._now()
        if self.form == "2.13":
            event |= {"compile_context": "N/A", "user_metadata": "", "pool_id": (0, 0)}
        self.events.append(event | {"frames": frames})

    def _now(self) -> int:
        self._time += 10
        return self._time

    def _segment_events(self, frames: Frames) -> None:
        now = {address: sum(one.size for one in self.model.blocks(first)) for address, first in self._firsts().items()}
        for address, (size, made) in list(self._segments.items()):
            if address not in now:
                self._event("segment_free", address, size, made)
                del self._segments[address]
        for address, size in now.items():
            if address not in self._segments:
                self._segments[address] = size, frames
                self._event("segment_alloc", address, size, frames)

    def _firsts(self) -> dict[int, Block]:
        return self.model._segments

    def allocate(self, nbytes: int, *frames: dict[str, Any]) -> Block:
        """A block; raises OutOfMemory, and writes that down."""
        stack = list(frames)
        try:
            block = self.model.allocate(nbytes)
        except OutOfMemory:
            self._segment_events(stack)
            self._event("oom", None, nbytes, stack, device_free=(self.model.limit or 0) - self.model.reserved)
            raise
        assert block is not None
        self._segment_events(stack)
        self._event("alloc", block.address, nbytes, stack)
        self._frames[block.address] = stack
        return block

    def free(self, block: Block, *frames: dict[str, Any]) -> None:
        requested = block.requested
        for action in ("free_requested", "free_completed"):
            self._event(action, block.address, requested, list(frames))
        del self._frames[block.address]
        self.model.free(block)

    def annotate(self, name: str, *, starts: bool) -> None:
        stage = "START" if starts else "END"
        self.annotations.append({"stage": stage, "name": name, "device": self.model.device, "time_us": self._now()})

    def segments(self) -> list[dict[str, Any]]:
        found = self.model.snapshot()
        for segment in found:
            for block in segment["blocks"]:
                block["frames"] = self._frames.get(block["address"], []) if block["state"] != "inactive" else []
        return found


def snapshot(*devices: Recorder) -> dict[str, Any]:
    """All of it, with traces for each of several devices."""
    whole: dict[str, Any] = {
        "segments": [segment for one in devices for segment in one.segments()],
        "device_traces": [one.events for one in devices],
    }
    if devices[0].form != "2.1":
        whole["allocator_settings"] = {"expandable_segments": False, "roundup_power2_divisions": {"1": 0}}
    if devices[0].form == "2.13":
        whole["external_annotations"] = [mark for one in devices for mark in one.annotations]
    return whole


def written_by_cpp(value: Any) -> bytes:
    """A pickle as the C++ half of torch writes it: protocol 2, one mark for a whole list, memo slots in order."""
    written = bytearray(b"\x80\x02")
    known: dict[str, int] = {}
    slots = 0

    def remember() -> int:
        nonlocal slots
        written.extend(b"q" + bytes([slots]) if slots < 256 else b"r" + struct.pack("<I", slots))
        slots += 1
        return slots - 1

    def write(one: Any) -> None:
        if isinstance(one, str):
            if one in known:
                slot = known[one]
                written.extend(b"h" + bytes([slot]) if slot < 256 else b"j" + struct.pack("<I", slot))
                return
            text = one.encode()
            written.extend(b"X" + struct.pack("<I", len(text)) + text)
            known[one] = remember()
        elif isinstance(one, bool):
            written.extend(b"\x88" if one else b"\x89")
        elif isinstance(one, int):
            if 0 <= one < 256:
                written.extend(b"K" + bytes([one]))
            elif -(1 << 31) <= one < 1 << 31:
                written.extend(b"J" + struct.pack("<i", one))
            else:
                written.extend(b"\x8a\x08" + struct.pack("<q", one))
        elif isinstance(one, dict):
            written.extend(b"}")
            remember()
            written.extend(b"(")
            for key, item in one.items():
                write(key)
                write(item)
            written.extend(b"u")
        elif isinstance(one, list | tuple):
            written.extend(b"]")
            remember()
            written.extend(b"(")
            for item in one:
                write(item)
            written.extend(b"e")
        else:
            raise TypeError(type(one))

    write(value)
    return bytes(written + b".")
