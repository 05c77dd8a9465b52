"""How operations run whose tensors are tagged as the GPU's: on the host, with what CUDA would do differently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.simulated.placement import HOST, Placement
from torchmemlint.runtime.simulated.workspaces import Workspaces
from torchmemlint.runtime.tracker import tensors_in

aten = torch.ops.aten
ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
"""The host's fused attention."""
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

    def __init__(self, placement: Placement, workspaces: Workspaces) -> None:
        self.placement = placement
        self._workspaces = workspaces
        self._substitutes: dict[Any, Callable[..., Any]] = {
            aten._softmax.default: _softmax,
            aten._log_softmax.default: _softmax,
            aten._softmax_backward_data.default: _softmax_backward,
            aten._log_softmax_backward_data.default: _softmax_backward,
            aten._thnn_fused_gru_cell.default: _gru_cell,
            aten._thnn_fused_gru_cell_backward.default: _gru_cell_backward,
        }
        attention = getattr(aten, ATTENTION, None)  # not in 2.2
        if attention is not None:
            self._substitutes[attention.default] = _attention
        scaling = aten._amp_foreach_non_finite_check_and_unscale_.default
        if not internals.has_host_kernel(scaling):  # 2.2
            self._substitutes[scaling] = _check_and_unscale
            self._substitutes[aten._amp_update_scale_.default] = _update_scale

    def device_of(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str | None:
        """Where the results are. Raises RuntimeError where tensors of two devices meet."""
        placement = self.placement
        if placement.forced is not None:
            return placement.forced
        anything = False
        gpu = foreign = None
        where, gpus = placement.tracker.device_of, placement.gpus
        for tensor in tensors_in((arguments, keywords) if keywords else arguments):
            anything = True
            found = where(tensor)
            if found is None and operation is aten.lift_fresh.default:
                return placement.ambient()
            if found is None:
                found = placement.where(tensor)
            if gpu is None and found in gpus:
                gpu = found
            elif found != gpu and (found in gpus or tensor.dim() > 0):
                foreign = found
        if not anything:
            return placement.ambient()
        if gpu is None:
            return HOST
        if foreign is not None and not _mixes(operation):
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {gpu} and {foreign}! "
                f"(when checking arguments of {operation})"
            )
        return gpu

    def run(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], device: str | None) -> Any:
        """Compute it."""
        if device is None or device not in self.placement.gpus:
            return self.compute(operation, arguments, keywords, device)
        passing = self._workspaces.before(operation, arguments, keywords, device)
        result = self.compute(operation, arguments, keywords, device)
        if passing:
            self._workspaces.pass_by(device, passing, result)
        if operation is aten._pack_padded_sequence.default:
            self.placement.tracker.place(result[1], HOST)  # the sizes of a packed sequence's batches
        return result

    def compute(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], device: str | None) -> Any:
        """Call the operation, on the host, which lacks some of CUDA's."""
        if device in self.placement.gpus:
            substitute = self._substitutes.get(operation)
            if substitute is not None:
                return substitute(operation, *arguments, **keywords)
        return operation(*arguments, **keywords)


def _softmax(operation: Any, tensor: torch.Tensor, dim: int, half_to_float: bool) -> Any:
    return operation(tensor.float() if half_to_float else tensor, dim, False)


def _softmax_backward(
    operation: Any, gradient: torch.Tensor, output: torch.Tensor, dim: int, dtype: torch.dtype
) -> torch.Tensor:
    result: torch.Tensor = operation(gradient, output, dim, output.dtype)
    return result if dtype == result.dtype else result.to(dtype)


def _attention(operation: Any, query: torch.Tensor, *rest: Any, **keywords: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The output and the sums of the softmax, in the layout that CUDA has for them where it has its own."""
    output, sums = operation(query, *rest, **keywords)
    if not attends_efficiently(query):
        return output, sums
    batch, heads, length = sums.shape
    padded = sums.new_empty((batch, heads, sums_length(length)))[..., :length]
    return output.transpose(1, 2).contiguous().transpose(1, 2), padded.copy_(sums)


def attends_efficiently(query: torch.Tensor) -> bool:
    """Whether CUDA computes fused attention by `_efficient_attention_forward`: half precision has other kernels."""
    return query.dtype == torch.float32 and hasattr(aten, ATTENTION)


def sums_length(length: int) -> int:
    """For how many queries it keeps the sums of the softmax: `kAlignLSE`, in
    aten/src/ATen/native/transformers/cuda/mem_eff_attention/kernel_forward.h. Its output is (batch, queries, heads,
    numbers) in memory whatever the query is; the host's follows the query."""
    return -(-length // 32) * 32


def _gru_cell(
    operation: Any, inputs: torch.Tensor, hidden: torch.Tensor, state: torch.Tensor, bias: Any = None, other: Any = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The next state, and what CUDA's kernel keeps for its backward: gates, state, and the state's part of the last."""
    read, written, new = (inputs if bias is None else inputs + bias).chunk(3, 1)
    read_too, written_too, kept = (hidden if other is None else hidden + other).chunk(3, 1)
    read, written = (read + read_too).sigmoid(), (written + written_too).sigmoid()
    new = (new + read * kept).tanh()
    return new + written * (state - new), torch.cat([read, written, new, state, kept], 1)


def _gru_cell_backward(
    operation: Any, gradient: torch.Tensor, workspace: torch.Tensor, has_bias: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
    read, written, new, state, kept = workspace.chunk(5, 1)
    of_written = gradient * (state - new) * written * (1 - written)
    of_new = gradient * (1 - written) * (1 - new * new)
    of_read = of_new * kept * read * (1 - read)
    inputs = torch.cat([of_read, of_written, of_new], 1)
    hidden = torch.cat([of_read, of_written, of_new * read], 1)
    biases = (inputs.sum(0), hidden.sum(0)) if has_bias else (None, None)
    return inputs, hidden, gradient * written, *biases


def _check_and_unscale(
    operation: Any, gradients: list[torch.Tensor], found: torch.Tensor, inverse: torch.Tensor
) -> None:
    for gradient in gradients:
        if not torch.isfinite(gradient).all():
            found.fill_(1.0)
        gradient.mul_(inverse.to(gradient.dtype))


def _update_scale(
    operation: Any,
    scale: torch.Tensor,
    tracker: torch.Tensor,
    found: torch.Tensor,
    growth: float,
    backoff: float,
    interval: int,
) -> torch.Tensor:
    if found.item():
        scale.mul_(backoff)
        tracker.zero_()
        return scale
    tracker.add_(1)
    if tracker.item() == interval:
        scale.mul_(growth)
        tracker.zero_()
    return scale


def _mixes(operation: Any) -> bool:
    name = operation._schema.name
    return name in _MAY_MIX or name.startswith("aten::_foreach") or operation.namespace != "aten"
