"""Programs for torchrun, run as the only rank."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch")
from click.testing import CliRunner  # noqa: E402

from torchmemlint.cli.main import cli  # noqa: E402
from torchmemlint.runtime.only_rank import only_rank  # noqa: E402

needs_distributed = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no distributed")
PROGRAM = """\
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = DistributedDataParallel(nn.Linear(64, 64).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(320, 64))
    loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data))
    losses = []
    for (batch,) in loader:
        loss = model(batch.to(rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(model(batch.to(rank)))
    dist.destroy_process_group()
    print(dist.is_initialized(), len(losses))


main()
"""


@needs_distributed
def test_the_environment_is_torchruns_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "7")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    before = torch.distributed.init_process_group
    with only_rank():
        assert (os.environ["RANK"], os.environ["WORLD_SIZE"]) == ("0", "1")
        torch.distributed.init_process_group("nccl")
        assert torch.distributed.get_world_size() == 1
        total = torch.ones(4)
        torch.distributed.all_reduce(total)
        assert total.tolist() == [1.0] * 4
    assert not torch.distributed.is_initialized()
    assert os.environ["RANK"] == "7"
    assert "WORLD_SIZE" not in os.environ
    assert torch.distributed.init_process_group is before


@needs_distributed
def test_data_parallel_training_without_a_gpu(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["trace", "--torchrun", "--isolated", "--steps", "10", "train.py"])
    assert "trace torchrun train.py" in result.output
    assert "train.py:24" in result.output  # `losses.append(model(...))`, which keeps a graph for each step
    assert "losses" in result.output
