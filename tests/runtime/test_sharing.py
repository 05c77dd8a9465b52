"""Tensors of a simulated GPU that are sent to another process."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import torch
import torch.multiprocessing as mp

from torchmemlint.runtime import track_memory


def send(queue: mp.Queue, received: mp.Event) -> None:
    """Runs in a process of its own."""
    with track_memory("simulated"):
        queue.put({"there": torch.ones(3, device="cuda"), "here": torch.ones(3)})
        received.wait()


def test_a_tensor_arrives_on_the_gpu_that_it_left() -> None:
    context = mp.get_context("spawn")
    queue, received = context.Queue(), context.Event()
    process = context.Process(target=send, args=(queue, received))
    process.start()
    with track_memory("simulated"):
        batch = queue.get(timeout=300)
        assert (batch["there"].device.type, batch["here"].device.type) == ("cuda", "cpu")
        assert (batch["there"] + torch.ones(3, device="cuda")).sum().item() == 6.0
        with pytest.raises(RuntimeError, match="same device"):
            batch["there"] + batch["here"].clone().unsqueeze(0)
    received.set()
    process.join()
    assert process.exitcode == 0
