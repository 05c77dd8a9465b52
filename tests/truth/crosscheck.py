"""A second count, independent of the first: objects that stand for saved tensors, counted as they are made and die."""

from __future__ import annotations

import gc
from collections.abc import Mapping

import torch

from .measure import batches_seen_by, run


class _Ledger:
    """How many of the stand-ins are alive."""

    alive = 0


class _StandIn:
    def __init__(self, tensor: torch.Tensor) -> None:
        _Ledger.alive += 1
        self.tensor = tensor.detach()  # an output that is kept here would keep its own graph

    def __del__(self) -> None:
        _Ledger.alive -= 1


def saved_series(files: Mapping[str, str], drive: str = "") -> list[int]:
    """How many saved tensors are alive at each batch. Programs with threads are not counted: hooks are per thread."""
    series: list[int] = []

    def at_batch() -> None:
        gc.collect()
        series.append(_Ledger.alive)

    with batches_seen_by(at_batch), torch.autograd.graph.saved_tensors_hooks(_StandIn, lambda standin: standin.tensor):
        run(files, drive)
    return series
