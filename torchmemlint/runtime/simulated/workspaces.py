"""What CUDA's libraries and kernels take beside an operation's tensors, as far as torch asks its allocator for it.

cuBLAS has a block for each thread that multiplies matrices, which it keeps: a forward's, and a backward's
(`aten/src/ATen/cuda/CublasHandlePool.cpp`). cuBLASLt, which multiplies where a bias is added
(`aten/src/ATen/native/cuda/Blas.cpp`, `isInputCompliesAddmmCudaLt`), has 1 MiB on all cards:
- until torch 2.8 while it computes (`gemm_and_bias` of `aten/src/ATen/cuda/CUDABlas.cpp`; pytorch/pytorch#73439);
- from 2.9 kept for each thread, as cuBLAS's is (#156495);
- from 2.12 none of its own, but cuBLAS's (#168175, #175879).

The backward of softmax multiplies gradient and result first, into a tensor of its own
(`aten/src/ATen/native/cuda/SoftMax.cu`, `softmax_backward_cuda_out`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.simulated.allocator import Block, CachingAllocator, OutOfMemory
from torchmemlint.runtime.tracker import tensors_in

LT = 1 << 20
"""`parseCUDABlasLtWorkspaceSize`: 1,024 KiB (the discussion: pytorch/pytorch#73328)."""
_KEPT, _SHARED = (2, 9), (2, 12)

_BY_CUBLAS = frozenset(
    ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::addbmm", "aten::mv", "aten::addmv", "aten::dot")
)
_BY_LT = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


class Workspaces:
    """Of each GPU. `size` is that of cuBLAS's; with 0 neither library has one."""

    def __init__(self, allocators: Mapping[str, CachingAllocator], size: int) -> None:
        self._allocators = allocators
        self._size = size
        self._kept: set[tuple[str, bool, int]] = set()

    def before(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], device: str) -> int:
        """Take what an operation's library keeps; gives the bytes that are needed for the operation only."""
        name = operation._schema.name
        if name == "aten::_softmax_backward_data":
            return int(arguments[0].nbytes)
        if not self._size or name not in _BY_CUBLAS:
            return 0
        self._keep(device, self._size)
        if name != "aten::addmm" or internals.RELEASE >= _SHARED or not _adds_a_bias(*arguments[:3], **keywords):
            return 0
        if internals.RELEASE < _KEPT:
            return LT
        self._keep(device, LT)
        return 0

    def pass_by(self, device: str, nbytes: int, result: Any) -> None:
        """Take so many bytes beside an operation's result, which is not counted yet, and give both back."""
        with contextlib.ExitStack() as stack:
            for size in (*(tensor.untyped_storage().nbytes() for tensor in tensors_in(result)), nbytes):
                stack.callback(self._allocators[device].free, self._allocate(device, size))

    def _keep(self, device: str, size: int) -> None:
        handle = device, internals.backward_node() is not None, size
        if handle not in self._kept:
            self._kept.add(handle)
            self._allocate(device, size)

    def _allocate(self, device: str, size: int) -> Block | None:
        try:
            return self._allocators[device].allocate(size)
        except OutOfMemory as error:
            raise torch.cuda.OutOfMemoryError(str(error)) from None


def _adds_a_bias(bias: Any, first: Any, second: Any, *, beta: Any = 1, **_others: Any) -> bool:
    rows, columns = second.shape
    return (
        beta == 1
        and bias.dim() == 1
        and bias.is_contiguous()
        and bias.shape[0] == columns
        and min(rows, columns) > 1
        and first.shape[0] > 0
        and first.dtype in _BY_LT
    )
