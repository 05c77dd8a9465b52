"""How operations run whose tensors are tagged as the GPU's: on the host, with what CUDA would do differently."""

from __future__ import annotations

from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.simulated.allocator import CachingAllocator
from torchmemlint.runtime.simulated.placement import GPU, HOST, Placement
from torchmemlint.runtime.tracker import tensors_in

aten = torch.ops.aten
_MATRIX_PRODUCTS = frozenset(
    ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::addbmm", "aten::mv", "aten::addmv", "aten::dot")
)
"""What runs in cuBLAS, which takes a workspace on each thread that uses it."""
_MAY_MIX = frozenset(
    f"aten::{name}"
    for name in (
        "copy_ _to_copy copy set_ resize_as_ is_same_size index index_put index_put_ _index_put_impl_ "
        "_pack_padded_sequence _pad_packed_sequence _ctc_loss _ctc_loss_backward tensor_split lift lift_fresh "
        "_unsafe_index _unsafe_index_put expand_as view_as reshape_as type_as unfold_backward _copy_from"
    ).split()
)
"""Operations that CUDA runs with tensors of the host among its own."""


class Tagged:
    """The tracker's execution: an operation is where its tensors are, and computes on the host."""

    def __init__(self, placement: Placement, allocator: CachingAllocator, workspace: int) -> None:
        self.placement = placement
        self._allocator = allocator
        self._workspace = workspace
        self._has_workspace: set[bool] = set()

    def device_of(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str | None:
        """Where the results are. Raises RuntimeError where tensors of two devices meet."""
        placement = self.placement
        if placement.forced is not None:
            return placement.forced
        gpu = anything = False
        foreign: torch.Tensor | None = None
        where = placement.tracker.device_of
        for tensor in tensors_in((arguments, keywords) if keywords else arguments):
            anything = True
            found = where(tensor)
            if found is None and operation is aten.lift_fresh.default:
                return placement.ambient()
            if found == GPU or (found is None and placement.where(tensor) == GPU):
                gpu = True
            elif tensor.dim() > 0:
                foreign = tensor
        if not anything:
            return placement.ambient()
        if not gpu:
            return HOST
        if foreign is not None and not _mixes(operation):
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
                f"(when checking arguments of {operation})"
            )
        return GPU

    def run(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], device: str | None) -> Any:
        """Compute it."""
        if device == GPU and operation._schema.name in _MATRIX_PRODUCTS:
            self.use_workspace()
        return self.compute(operation, arguments, keywords, device)

    def compute(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], device: str | None) -> Any:
        """Call the operation, on the host."""
        return operation(*arguments, **keywords)

    def use_workspace(self) -> None:
        """Allocate what cuBLAS keeps for the thread: one for the forward's, one for the backward's."""
        in_backward = internals.backward_node() is not None
        if self._workspace and in_backward not in self._has_workspace:
            self._has_workspace.add(in_backward)
            self._allocator.allocate(self._workspace)


def _mixes(operation: Any) -> bool:
    name = operation._schema.name
    return name in _MAY_MIX or name.startswith("aten::_foreach") or operation.namespace != "aten"
