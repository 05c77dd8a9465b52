"""What is read from the snapshots of CUDA's allocator.

The sample follows what `torch.cuda.memory._snapshot` documents: addresses, blocks and segments are those of the model
of the allocator, the history is written down as the model works. Torch's own reader of snapshots (`_memory_viz`) must
take it. No GPU has made it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torchmemlint.report.allocator import outside_tensors  # noqa: E402
from torchmemlint.runtime import backends, internals  # noqa: E402
from torchmemlint.runtime.allocator_history import AllocatorUse, Outside, allocator_use  # noqa: E402
from torchmemlint.runtime.simulated.allocator import Block, CachingAllocator  # noqa: E402
from torchmemlint.runtime.simulated.cards import WORKSPACE  # noqa: E402

HOME = "/home/me/train.py"
TORCH = {"filename": "/site-packages/torch/nn/modules/linear.py", "line": 134, "name": "forward"}
MIB = 1 << 20


def frames(line: int | None) -> list[dict[str, Any]]:
    """The innermost first, as torch gives them; a backward's thread has none."""
    return [] if line is None else [TORCH, {"filename": HOME, "line": line, "name": "main"}]


class Recorder:
    """Has the model of the allocator work, and writes down what the real one would."""

    def __init__(self) -> None:
        self.model = CachingAllocator()
        self.entries: list[dict[str, Any]] = []
        self.frames: dict[int, list[dict[str, Any]]] = {}
        self.owned: list[tuple[int, int]] = []

    def _note(self, action: str, address: int, size: int, line: int | None = None) -> None:
        self.entries.append({"action": action, "addr": address, "size": size, "stream": 0, "frames": frames(line)})

    def allocate(self, nbytes: int, line: int | None, *, tensor: bool) -> Block:
        known = {one["address"] for one in self.model.snapshot()}
        block = self.model.allocate(nbytes)
        assert block is not None
        for segment in self.model.snapshot():
            if segment["address"] not in known:
                self._note("segment_alloc", segment["address"], segment["total_size"], line)
        self._note("alloc", block.address, nbytes, line)
        self.frames[block.address] = frames(line)
        if tensor:
            self.owned.append((block.address, nbytes))
        return block

    def free(self, block: Block, *, completes: bool = True) -> None:
        self._note("free_requested", block.address, block.requested)
        if completes:
            self._note("free_completed", block.address, block.requested)
            self.model.free(block)

    def snapshot(self, device: int = 0) -> dict[str, Any]:
        segments = self.model.snapshot()
        for segment in segments:
            segment["device"] = device
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    block["frames"] = self.frames[block["address"]]
        return {"segments": segments, "device_traces": [[]] * device + [self.entries]}


def is_users(path: str) -> bool:
    return path == HOME


def use_of(recorder: Recorder, **how: Any) -> AllocatorUse:
    return allocator_use(recorder.snapshot(), 0, recorder.owned, is_users, **how)


@pytest.fixture
def training() -> Recorder:
    """Two products with their workspaces, and three convolutions that each take one of their own for a moment."""
    made = Recorder()
    weight = made.allocate(4 * MIB, 10, tensor=True)
    made.allocate(WORKSPACE, 20, tensor=False)  # cuBLAS, the forward's
    for size in (3 * MIB, 5 * MIB, 2 * MIB):
        out = made.allocate(MIB, 31, tensor=True)
        scratch = made.allocate(size, 31, tensor=False)  # cuDNN
        made.free(scratch)
        made.free(out)
    made.allocate(WORKSPACE, None, tensor=False)  # cuBLAS, the backward's
    again = made.allocate(700, 40, tensor=True)
    made.free(again)
    made.free(weight)
    return made


def test_torch_reads_the_sample(training: Recorder) -> None:
    from torch.cuda import _memory_viz

    snapshot = training.snapshot()
    assert f"segments: {len(snapshot['segments'])}\n" in _memory_viz.segsum(snapshot)
    assert "cudaMalloc" in _memory_viz.trace(snapshot)
    flames = _memory_viz.memory(snapshot, format_flamegraph=lambda text: text)
    assert f"train.py:20:main;linear.py:134:forward {WORKSPACE}\n" in flames


def test_what_no_tensor_owns_is_told_by_line(training: Recorder) -> None:
    told = use_of(training)
    assert told.outside == (
        Outside(HOME, 20, "main", WORKSPACE, 1),
        Outside("?", 0, "?", WORKSPACE, 1),
        Outside(HOME, 31, "main", 5 * MIB, 3),
    )
    assert told.outside_peak == 2 * WORKSPACE
    assert (told.segments, told.reserved) == (len(training.snapshot()["segments"]), training.model.reserved)
    assert told.allocated == 2 * WORKSPACE
    assert told.whole
    assert not use_of(training, most_entries=len(training.entries)).whole


def test_an_address_is_used_again_by_tensors_and_others() -> None:
    made = Recorder()
    made.free(made.allocate(2048, 1, tensor=False))
    made.free(made.allocate(2048, 2, tensor=True))
    made.free(made.allocate(4096, 3, tensor=False))
    made.free(made.allocate(2000, 4, tensor=True))  # the same block
    assert len({entry["addr"] for entry in made.entries if entry["action"] == "alloc"}) == 1
    # Of what is alike, at one address, the first is taken for the tensor: how often and how much is right.
    assert [(one.nbytes, one.times) for one in use_of(made).outside] == [(4096, 1), (2048, 1)]


def test_a_record_that_was_no_allocation_of_its_own_is_passed_over() -> None:
    made = Recorder()
    made.free(made.allocate(2048, 1, tensor=True))
    made.owned.append((made.owned[0][0], 4096))  # the storage was seen again with other bytes
    made.free(made.allocate(1024, 2, tensor=True))
    made.free(made.allocate(4096, 3, tensor=False))
    assert [(one.line, one.nbytes) for one in use_of(made).outside] == [(3, 4096)]


def test_what_waits_for_another_stream_is_still_held() -> None:
    made = Recorder()
    made.free(made.allocate(MIB, 1, tensor=False), completes=False)
    made.allocate(MIB, 2, tensor=False)
    assert use_of(made).outside_peak == 2 * MIB


def test_other_devices_are_left_out(training: Recorder) -> None:
    snapshot = training.snapshot(device=1)
    first = allocator_use(snapshot, 0, training.owned, is_users)
    assert (first.segments, first.reserved, first.outside) == (0, 0, ())
    assert allocator_use(snapshot, 1, training.owned, is_users).outside_peak == 2 * WORKSPACE
    assert allocator_use(snapshot, 2, training.owned, is_users).outside == ()


def test_in_words(training: Recorder) -> None:
    told = use_of(training)
    assert outside_tensors(told, Path("/home/me")) == (
        "16.2 MiB at most, for train.py:20 (8.1 MiB), no line of the program (8.1 MiB), train.py:31 (5.0 MiB)"
    )
    assert outside_tensors(replace(told, whole=False), Path("/")).endswith("; of the last part of the run")
    assert outside_tensors(replace(told, outside=(), outside_peak=0), Path("/")) == "nothing"


def test_the_backend_puts_it_together(monkeypatch: pytest.MonkeyPatch, training: Recorder) -> None:
    """With torch's own functions replaced, which are not there without a GPU; the tensors are the host's."""
    on_cuda: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "synchronize": lambda device: None,
        "reset_peak_memory_stats": lambda device: None,
        **dict.fromkeys(("memory_allocated", "memory_reserved", "max_memory_reserved"), lambda device: 0),
        "max_memory_allocated": lambda device: 100,
    }
    for name, function in on_cuda.items():
        monkeypatch.setattr(torch.cuda, name, function)
    asked: list[int] = []
    monkeypatch.setattr(internals, "record_history", lambda entries: not asked.append(entries))
    monkeypatch.setattr(internals, "end_history", training.snapshot)
    backend = backends.choose("cuda", history=True)
    with backend.running():
        kept = torch.ones(1000)
    assert asked == [backends.ENTRIES]
    assert list(backend.tracker.addresses or ()) == [kept.data_ptr()]
    told = backend.allocator_use("cuda:0")
    assert told is not None
    assert told.outside_peak > 2 * WORKSPACE  # no tensor was seen where the sample has its own
    assert backend.allocator_use("cpu") is None
    assert backends.Cuda().allocator_use("cuda:0") is None  # nobody asked


def test_torch_takes_the_settings_of_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held against the functions of this torch, down to the C++ that needs a GPU."""
    given: list[tuple[Any, ...]] = []
    driver = {"_cuda_record_memory_history": lambda *how: given.append(how), "_cuda_memorySnapshot": lambda *_: {}}
    for name, function in driver.items():
        monkeypatch.setattr(torch._C, name, function, raising=False)
    assert internals.record_history(7)
    assert given[0][:4] == ("all", "alloc", "python", 7)
    assert internals.end_history() == {}
    assert given[1][0] is None
    monkeypatch.delattr(torch.cuda.memory, "_record_memory_history")
    assert not internals.record_history(7)
    assert internals.end_history() is None
