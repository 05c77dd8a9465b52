"""Tensors of a simulated GPU that go to another process: they arrive on the same GPU, as those of a real one do.

To `torch.multiprocessing` they are tensors of the host, whose values go through shared memory; the name of their
device goes along. In a process that simulates nothing they arrive as what they are. They are counted where they arrive;
a real GPU counts them in the process that made them.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch

from torchmemlint.runtime.simulated.placement import Placement
from torchmemlint.runtime.simulated.replacing import Replacements

_receiving: list[Placement] = []
"""Of the simulations that run in this process, the last one places what arrives."""


def replace_sharing(replacements: Replacements, placement: Placement) -> None:
    """Let tensors take their device along, place those that arrive, and note both."""
    import torch.multiprocessing

    reducers: dict[type, Callable[[Any], Any]] = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    for kind in (torch.Tensor, torch.nn.Parameter):
        if kind in reducers:
            reduce = reducers[kind]
            reducers[kind] = _taking_along(reduce, placement)
            replacements.callback(reducers.__setitem__, kind, reduce)
    _receiving.append(placement)
    replacements.callback(_receiving.remove, placement)


def _taking_along(reduce: Callable[[Any], Any], placement: Placement) -> Callable[[Any], Any]:
    def reduced(tensor: torch.Tensor) -> Any:
        device = placement.where(tensor)
        made = reduce(tensor)
        if device not in placement.gpus:
            return made
        placement.tracker.note_shared(tensor)
        return _arrived, (device, *made)

    return reduced


def _arrived(device: str, make: Callable[..., torch.Tensor], arguments: tuple[Any, ...]) -> torch.Tensor:
    """Runs where a tensor is received."""
    tensor = make(*arguments)
    if _receiving and device in _receiving[-1].gpus:
        tracker = _receiving[-1].tracker
        tracker.place(tensor, device)
        tracker.note_shared(tensor)
    return tensor
