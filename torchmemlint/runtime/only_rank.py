"""A program for `torchrun`, run as the first of one process: what torchrun would tell it, and a group of itself.

Every rank of data-parallel training holds the same model, optimizer state and graph, so that one rank shows the
patterns of all. What only several ranks have (shards, the communication's own buffers) is not there.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
from collections.abc import Iterator
from typing import Any

import torch


def told_by_torchrun() -> dict[str, str]:
    """The environment that torchrun gives the only process of a run on one machine."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    only = {"RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    return {**only, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "torchmemlint"}


@contextlib.contextmanager
def only_rank() -> Iterator[None]:
    """While entered, the process is that one, and a group asked of NCCL is one of Gloo where there is no GPU."""
    told = told_by_torchrun()
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    with contextlib.ExitStack() as stack:
        stack.callback(_put_back, before)
        if torch.distributed.is_available() and not torch.cuda.is_available():
            _without_nccl(stack)
        yield


def _put_back(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _without_nccl(stack: contextlib.ExitStack) -> None:
    distributed: Any = torch.distributed
    original = distributed.init_process_group

    @functools.wraps(original)
    def init_process_group(backend: str | None = None, *arguments: Any, **keywords: Any) -> Any:
        keywords.pop("device_id", None)  # binds the group to a GPU, which Gloo refuses
        wanted = "gloo" if backend is None or "nccl" in backend else backend
        return original(wanted, *arguments, **keywords)

    distributed.init_process_group = init_process_group
    stack.callback(setattr, distributed, "init_process_group", original)
    stack.callback(_leave_group)


def _leave_group() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
