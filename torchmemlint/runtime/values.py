"""The losses and parameters of a run, kept for a comparison with another run."""

from __future__ import annotations

import itertools
import weakref
from pathlib import Path
from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.tracker import tensors_in

LARGEST = 4 << 30
"""Bytes of parameters that are copied; of larger models only the losses are compared."""


class Values:
    """Keeps each loss, and a host copy of every optimizer's parameters as they were after its last step.

    A copy, because the parameters may be gone when the program ends, and because to keep them would change what is
    measured. The copies are made unwatched.
    """

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.too_large = False
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._count = itertools.count()
        self._copies: dict[str, torch.Tensor] = {}
        self._bytes = 0

    def see_losses(self, roots: Any) -> None:
        """Backward begins at these."""
        with internals.unwatched():
            for root in map(internals.local_of, tensors_in(roots)):
                if root.numel() == 1 and not internals.is_fake(root):
                    self.losses.append(float(root.detach().item()))

    def see_parameters(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        number = self._numbers.get(optimizer)
        if number is None:
            number = self._numbers[optimizer] = next(self._count)
        with internals.unwatched(), torch.no_grad():
            for place, group in enumerate(optimizer.param_groups):
                for index, parameter in enumerate(map(internals.local_of, group["params"])):
                    if not internals.is_fake(parameter):
                        self._copy(f"{number}.{place}.{index}", parameter)

    def _copy(self, name: str, parameter: torch.Tensor) -> None:
        copy = self._copies.get(name)
        if copy is not None and copy.shape == parameter.shape and copy.dtype == parameter.dtype:
            copy.copy_(parameter.detach())
            return
        size = parameter.numel() * parameter.element_size()
        if self._bytes + size > LARGEST:
            self.too_large = True
            return
        self._bytes += size
        self._copies[name] = parameter.detach().to("cpu", copy=True)

    def write(self, path: Path) -> None:
        """To a file, for `compare`."""
        values = {"losses": self.losses, "parameters": self._copies, "too_large": self.too_large}
        with internals.unwatched():
            torch.save(values, path)
