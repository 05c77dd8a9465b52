"""Processes that a program begins itself: forked and spawned ones in one run, as each interpreter imports torch."""

from __future__ import annotations

import functools
import multiprocessing.spawn
import sys
from dataclasses import replace
from multiprocessing import Process
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torchmemlint.runtime.launch import launch, order_for, workspace  # noqa: E402
from torchmemlint.runtime.order import Program, ProjectFiles  # noqa: E402
from torchmemlint.runtime.results import End, RunResult  # noqa: E402
from torchmemlint.runtime.several import with_processes  # noqa: E402
from torchmemlint.runtime.spawned import Following  # noqa: E402
from torchmemlint.runtime.torchrun import free_port  # noqa: E402

PROGRAM = """\
import multiprocessing
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SIZE = 256


def train(rank, world, device):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    model = DistributedDataParallel(nn.Linear(64, 64).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for step in range(100):
        loss = model(torch.ones(4, 64, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(torch.ones(SIZE, device=device))
    os.write(1, f"{rank} {device} {len(kept)}\\n".encode())  # in one piece, beside other processes
    dist.destroy_process_group()


def spawned(rank, device):
    train(rank, 1, device)
    raise ValueError("at the end")


def nothing():
    pass


if __name__ == "__main__":
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", sys.argv[1]
    forked = [multiprocessing.Process(target=train, args=(rank, 2, "cpu")) for rank in range(2)]
    forked.append(multiprocessing.Process(target=nothing))
    for process in forked:
        process.start()
    for process in forked:
        process.join()
    mp.spawn(spawned, args=("cuda:1",), nprocs=1)
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no distributed")
@pytest.mark.skipif(sys.platform != "linux" or sys.version_info >= (3, 14), reason="processes are not forked")
def test_forked_and_spawned_processes_are_measured_as_ranks(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    with workspace() as space:
        program = Program("train.py", (str(free_port()),), directory=str(tmp_path))
        overlay = {str(path): PROGRAM.replace("SIZE = 256", "SIZE = 512")}
        order = order_for(program, space, steps=8, devices=2, values=True, overlay=overlay, probes={str(path): (24,)})
        result = launch(order)
        out = (Path(order.folder) / "stdout").read_text()
        assert list(order.values_files) == ["rank-0", "rank-1", "rank-2", "rank-3"]
    assert sorted(out.splitlines()) == ["0 cpu 8", "0 cuda:1 8", "1 cpu 8"]  # all of them stopped at the same step
    # The process without steps is no rank; the one that was spawned ran the text that stands for the file's.
    assert [(one.rank, one.device, one.steps, one.growth_per_step) for one in result.ranks] == [
        (0, "cpu", 8, 2048.0),
        (1, "cpu", 8, 2048.0),
        (3, "cuda:1", 8, 2048.0),
    ]
    assert (result.end, result.error) == (End.FAILED, "rank 3: ValueError: at the end")
    assert 'raise ValueError("at the end")' in result.traceback
    assert result.reached == {f"{path}:24": 24}
    assert (result.rank, result.device) == (3, "cuda:1")  # a GPU is what the report is about, where one is used


def function() -> None:
    """Of this module."""


class Worker(Process):
    def run(self) -> None:
        pass


def test_which_processes_are_followed() -> None:
    from torch.utils.data._utils.worker import _worker_loop

    def follower(*roots: str) -> Following:
        instrumented = SimpleNamespace(files=ProjectFiles(roots))
        run: Any = SimpleNamespace(instrumented=instrumented)
        return Following(run)

    here = follower(str(Path(__file__).parent))
    wrap = sys.modules["torch.multiprocessing.spawn"]._wrap
    partial = functools.partial(functools.partial(function))
    assert all(here._is_followed(Process(target=one)) for one in (function, partial, wrap))
    assert here._is_followed(Worker())
    assert not any(here._is_followed(Process(target=one)) for one in (_worker_loop, Path.cwd, None))
    elsewhere = follower("/nowhere")
    assert not elsewhere._is_followed(Process(target=function))
    assert not elsewhere._is_followed(Worker())


def test_everything_is_put_back() -> None:
    before = Process.start, Process._bootstrap, multiprocessing.spawn.get_preparation_data  # type: ignore[attr-defined]
    run: Any = SimpleNamespace()
    with Following(run):
        assert Process.start is not before[0]
    after = Process.start, Process._bootstrap, multiprocessing.spawn.get_preparation_data  # type: ignore[attr-defined]
    assert after == before


def test_a_launcher_that_trains_as_well_is_one_of_them() -> None:
    launcher = RunResult(End.FINISHED, steps=0, ended=9.0, files=("main.py",), reached={"main.py:1": 1})
    rank = RunResult(End.FINISHED, rank=0, steps=5, peak=7, device="cpu", ended=5.0, files=("net.py",))
    idle = RunResult(End.FINISHED, rank=1, peak=3, device="cpu")
    assert with_processes(launcher, [idle]) == launcher
    whole = with_processes(launcher, [rank, idle])
    assert [one.rank for one in whole.ranks] == [0]
    assert (whole.peak, whole.steps, whole.reached) == (7, 5, {"main.py:1": 1})
    assert sorted(whole.files) == ["main.py", "net.py"]
    training = replace(launcher, steps=3, peak=9, device="cpu")
    assert [one.rank for one in with_processes(training, [rank]).ranks] == [None, 0]
    broken = replace(launcher, end=End.FAILED, error="OSError: no disk", ended=9.0)
    assert with_processes(broken, [rank]).error == "OSError: no disk"
