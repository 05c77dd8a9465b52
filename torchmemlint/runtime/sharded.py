"""One of several GPUs that share a program's work: the program is its first rank, and there are no others.

The process group is torch's own fake one: whatever it is asked for has the right shape at once, and the values that the
others would send are never there. Torch measures the memory of sharded training with it itself
(`torch/distributed/_tools/fsdp2_mem_tracker.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from torchmemlint.runtime import internals


def join(ranks: int) -> None:
    """Become the first of so many ranks. Raises RuntimeError for a program that is one of several already."""
    distributed: Any = torch.distributed
    if distributed.is_initialized():
        if distributed.get_backend() != "fake":
            raise RuntimeError("the program has a process group of its own")
        return
    distributed.init_process_group("fake", store=internals.fake_store(), rank=0, world_size=ranks)


def share_states(
    optimizer: type[torch.optim.Optimizer], ranks: int, made: Callable[[], None]
) -> type[torch.optim.Optimizer]:
    """The same optimizer with its states shared out (ZeRO, stage 1): each rank has those of some parameters.

    `made` is called for each one that is made.
    """
    from torch.distributed.optim import ZeroRedundancyOptimizer  # needs a torch with `distributed`

    signature = inspect.signature(optimizer)

    class Shared(ZeroRedundancyOptimizer):
        def __init__(self, params: Any, *given: Any, **named: Any) -> None:
            made()
            join(ranks)
            settings = dict(signature.bind(params, *given, **named).arguments)
            settings.pop("params")
            super().__init__(params, optimizer_class=optimizer, **settings)

    return Shared


def shard(module: nn.Module, blocks: Iterable[nn.Module], ranks: int) -> dict[nn.Parameter, nn.Parameter]:
    """Shard a network's parameters by FSDP2, each block and then the rest; gives the new parameter of each old one."""
    from torch.distributed.device_mesh import init_device_mesh  # need a torch with `distributed`

    fully_shard = internals.fully_shard()
    join(ranks)
    mesh = init_device_mesh("cuda", (ranks,))
    before = dict(module.named_parameters(remove_duplicate=False))
    for one in (*blocks, module):
        fully_shard(one, mesh=mesh)
    after = dict(module.named_parameters(remove_duplicate=False))
    return {old: after[name] for name, old in before.items() if after[name] is not old}
