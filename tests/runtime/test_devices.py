"""Several simulated GPUs in one process: each has its own bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from torchmemlint.runtime.memory import MemoryUse, track_memory  # noqa: E402

MIB = 1 << 20


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 8))


def peaks(memory: MemoryUse) -> dict[str, int]:
    return {device: memory.backend.ledger.peaks[device] for device in memory.backend.devices()}


def test_each_gpu_has_its_own_bytes_and_answers() -> None:
    with track_memory(devices=2) as memory:
        assert torch.cuda.device_count() == 2
        first = torch.ones(MIB // 4, device="cuda")
        second = first.to("cuda:1")
        assert (first.device, second.device, second.get_device()) == (
            torch.device("cuda", 0),
            torch.device("cuda", 1),
            1,
        )
        assert "device='cuda:1'" in repr(second)
        with torch.cuda.device(1):
            third = torch.zeros(MIB // 2, device="cuda")
            assert torch.cuda.current_device() == 1
        assert third.device.index == 1
        assert torch.cuda.current_device() == 0
        assert [torch.cuda.memory_allocated(number) for number in (0, 1)] == [MIB, 3 * MIB]
        torch.cuda.set_device(1)
        assert torch.cuda.memory_allocated() == 3 * MIB
        assert torch.ones(1).cuda().device.index == 1
        del third
        assert torch.cuda.max_memory_allocated(0) == MIB
        torch.cuda.set_device("cuda:0")
    assert peaks(memory) == {"cuda:0": MIB, "cuda:1": 3 * MIB + 4}
    assert memory.device == "cuda:1"


def test_what_is_not_there_or_does_not_mix() -> None:
    with track_memory(devices=2):
        one, other = torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")
        with pytest.raises(RuntimeError, match="cuda:0 and cuda:1"):
            one + other
        with pytest.raises(RuntimeError, match=r"simulates 2 GPUs, cuda:0 to cuda:1"):
            torch.ones(1, device="cuda:2")
        one.copy_(other + 1)
        assert one.tolist() == [2.0, 2.0]
    with track_memory("simulated"), pytest.raises(RuntimeError, match="simulates one GPU, cuda:0; --devices"):
        torch.ones(1, device="cuda:1")


def test_a_model_in_two_halves() -> None:
    """Activations and gradients are where their half is; the same numbers come out as on one GPU."""

    def train(one: str, other: str) -> tuple[list[float], MemoryUse]:
        losses = []
        with track_memory("simulated", devices=2) as memory:
            torch.manual_seed(0)
            first, second = nn.Linear(256, 512).to(one), nn.Linear(512, 256).to(other)
            optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
            for _ in range(3):
                out = second(first(torch.ones(64, 256, device=one)).relu().to(other))
                loss = out.square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            grads = {next(half.parameters()).grad.device.index for half in (first, second)}
            assert grads == {int(one[-1]), int(other[-1])}
        return losses, memory

    whole, together = train("cuda:0", "cuda:0")
    halves, apart = train("cuda:0", "cuda:1")
    assert whole == halves
    weights = 256 * 512 * 4
    for device in ("cuda:0", "cuda:1"):
        assert 4 * weights < peaks(apart)[device] < peaks(together)["cuda:0"] <= sum(peaks(apart).values())


@pytest.mark.parametrize("fake", [False, True], ids=["values", "shapes"])
def test_data_parallel_computes_what_one_gpu_does(fake: bool) -> None:
    def train(wrap: Callable[[nn.Module], Any]) -> tuple[list[Any], MemoryUse]:
        with track_memory("simulated", devices=2, fake=fake) as memory:
            inner = network().cuda()
            inner[1].eval()  # its statistics would be those of half a batch
            model = wrap(inner)
            optimizer = torch.optim.SGD(inner.parameters(), lr=0.1)
            for _ in range(2):
                batch = torch.linspace(0, 1, 16 * 32).view(16, 32).cuda()
                out = model(batch)
                assert out.device == torch.device("cuda", 0)
                optimizer.zero_grad()
                out.square().mean().backward()
                optimizer.step()
            return [one.detach().cpu() for one in inner.parameters()], memory

    single, alone = train(lambda inner: inner)
    double, shared = train(nn.DataParallel)
    assert all(torch.allclose(one, other) for one, other in zip(single, double, strict=True))
    assert set(peaks(alone)) == {"cuda:0"}
    assert set(peaks(shared)) == {"cuda:0", "cuda:1"}
    parameters = sum(one.numel() * 4 for one in single)
    assert peaks(shared)["cuda:1"] > parameters
    assert shared.ledger.live["cuda:1"] == 0, "replicas go after each step"


def test_a_file_from_the_second_gpu_is_loaded_there(tmp_path) -> None:
    with track_memory(devices=2):
        torch.save(torch.ones(3, device="cuda:1"), tmp_path / "one.pt")
        assert torch.load(tmp_path / "one.pt").device.index == 1
        assert torch.load(tmp_path / "one.pt", map_location={"cuda:1": "cuda:0"}).device.index == 0
        assert torch.Generator(device="cuda:1").device == torch.device("cuda", 1)
