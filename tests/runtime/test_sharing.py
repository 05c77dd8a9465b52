"""Tensors of a simulated GPU that are sent to another process."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

pytest.importorskip("torch")
import torch
import torch.multiprocessing as mp

from torchmemlint.cli.main import main
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


QUEUE = """
    import torch
    import torch.multiprocessing as mp
    from torch import nn

    def produce(queue):
        for _ in range(40):
            queue.put(torch.ones(8, 16).cuda())
        queue.put(None)

    def consume(queue):
        model = nn.Linear(16, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        while True:
            batch = queue.get()
            if batch is None:
                break
            optimizer.zero_grad()
            model(batch.cuda()).mean().backward()
            optimizer.step()

    if __name__ == "__main__":
        context = mp.get_context("spawn")
        queue = context.Queue(maxsize=4)
        producer = context.Process(target=produce, args=(queue,), daemon=True)
        producer.start()
        consume(queue)
"""


def test_what_is_sent_gets_no_all_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(dedent(QUEUE))
    monkeypatch.chdir(tmp_path)
    main(["trace", "--isolated", "--backend", "simulated", "--color", "never", "--quiet", "train.py"])
    said = capfd.readouterr().out
    assert "No growth" not in said
    place = said.partition("Growth cannot be told: tensors on the GPU go from process to process, at train.py:")[2]
    # Where they are received; where they are made, if the producer came to its end and told it.
    assert place.partition(".")[0] in ("15", "8")


@pytest.mark.slow
def test_what_is_sent_from_the_cpu_is_no_reason_for_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(dedent(QUEUE).replace("torch.ones(8, 16).cuda()", "torch.ones(8, 16)"))
    monkeypatch.chdir(tmp_path)
    main(["trace", "--isolated", "--backend", "simulated", "--color", "never", "--quiet", "train.py"])
    said = capfd.readouterr().out
    assert "No growth from step to step in 30 steps" in said
    assert "from process to process" not in said
