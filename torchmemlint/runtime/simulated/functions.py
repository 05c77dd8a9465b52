"""Functions that do something else with tensors of a GPU: dropout, attention, loading, grouping, backward."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch import serialization

from torchmemlint.runtime import internals
from torchmemlint.runtime.simulated.autocast import Autocast, converts_within
from torchmemlint.runtime.simulated.execution import attends_efficiently
from torchmemlint.runtime.simulated.hollow import is_unknown
from torchmemlint.runtime.simulated.mapping import Mapping
from torchmemlint.runtime.simulated.replacing import Replacements
from torchmemlint.runtime.simulated.replicas import replace_replication

_ROW = 8


def replace_functions(replacements: Replacements, mapping: Mapping) -> None:
    """Put everything in place; leaving the replacements puts torch's own back."""
    _replace_dropout(replacements, mapping)
    _replace_attention(replacements, mapping)
    _replace_softmax(mapping)
    _replace_gru_cell(mapping)
    _replace_backward(replacements, mapping)
    _replace_grouping(replacements, mapping)
    _replace_loading(replacements, mapping)
    replace_replication(replacements, mapping)
    _replace_reducing(replacements, mapping)
    Autocast(mapping.placement).put_in_place(replacements)


def replace_for_hollow(replacements: Replacements, mapping: Mapping) -> None:
    """What would look at values that are not there: printing, copying storages, saving."""
    tensor_class: Any = torch.Tensor

    def shown(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        tensor = arguments[0]
        if not is_unknown(tensor):
            return mapping.represent(function, arguments, keywords)
        device = mapping.placement.where(tensor)
        return f"tensor(..., device='{device}', size={tuple(tensor.shape)}, dtype={tensor.dtype})"

    def copied(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        tensor, memo = (*arguments, *keywords.values())
        if id(tensor) in memo or not mapping.placement.on_gpu(tensor):
            return function(*arguments, **keywords)
        result = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        memo[id(tensor)] = result
        return result

    mapping.handle(tensor_class.__repr__, shown)
    mapping.handle(tensor_class.__deepcopy__, copied)
    replacements.replace(torch, "save", lambda *arguments, **keywords: None)
    _resize_nothing(replacements, mapping)


def _resize_nothing(replacements: Replacements, mapping: Mapping) -> None:
    """Storages without memory change their size in name: sharded training resizes what it gathers."""
    storage: Any = torch.UntypedStorage
    resize = storage.resize_

    def resize_(one: Any, size: int) -> Any:
        if one.resizable() or not getattr(one, "values_are_unknown", False):
            return resize(one, size)
        one.stands_for = size
        mapping.placement.tracker.resized(one)
        return one

    replacements.replace(storage, "resize_", resize_)
    replacements.replace(storage, "size", internals.bytes_of)


def _replace_dropout(replacements: Replacements, mapping: Mapping) -> None:
    """CUDA's dropout keeps a mask of bytes; the host's multiplies by a tensor of the input's type."""
    functional, compiled = F.dropout, torch.dropout

    def dropped(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if training and not inplace and 0 < p < 1 and input.numel() and mapping.placement.on_gpu(input):
            return torch.native_dropout(input, p, True)[0]
        return functional(input, p, training, inplace)

    def handler(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        values = dict(zip(("input", "p", "training", "inplace"), arguments, strict=False)) | keywords
        values["training"] = values.pop("train", values.get("training", True))
        with mapping.placement.inside(arguments, keywords):
            return dropped(**values)

    replacements.replace(F, "dropout", dropped)
    mapping.handle(functional, handler)
    mapping.handle(compiled, handler)


def _replace_softmax(mapping: Mapping) -> None:
    """CUDA's softmax of half precision to float32 converts within its kernel; the host's copies first."""

    def handler_of(inner: Any) -> Any:
        def handler(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
            tensor: Any = arguments[0] if arguments else keywords.get("input")
            dim = arguments[1] if len(arguments) > 1 else keywords.get("dim")
            if (
                isinstance(dim, int)
                and converts_within(tensor, keywords.get("dtype"))
                and mapping.placement.on_gpu(tensor)
            ):
                return inner(tensor, dim, True)
            return mapping.call(function, arguments, keywords)

        return handler

    for owner in (F, torch, torch.Tensor):
        mapping.handle(owner.softmax, handler_of(torch._softmax))
        mapping.handle(owner.log_softmax, handler_of(torch._log_softmax))


def _replace_gru_cell(mapping: Mapping) -> None:
    """CUDA's GRU cell is one kernel after two products, and keeps the gates (`GRUCell` of aten/src/ATen/native/RNN.cpp,
    `_thnn_fused_gru_cell` of aten/src/ATen/native/cuda/RNN.cu); the host's is made of small operations."""

    def stepped(
        input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, **others: Any
    ) -> torch.Tensor:
        gates = F.linear(input, w_ih), F.linear(hx, w_hh)
        result: torch.Tensor = torch.ops.aten._thnn_fused_gru_cell(*gates, hx, b_ih, b_hh)[0]
        return result

    def handler(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        state = arguments[1] if len(arguments) > 1 else keywords["hx"]
        if state.dim() != 2 or torch.is_autocast_enabled() or not mapping.placement.on_gpu(state):
            return mapping.call(function, arguments, keywords)
        with mapping.placement.inside(arguments, keywords):
            return stepped(*arguments, **keywords)

    mapping.handle(torch.gru_cell, handler)


def _replace_attention(replacements: Replacements, mapping: Mapping) -> None:
    """CUDA's fused attention also drops; the host's does not, and would keep the whole matrix of scores for it."""
    original = F.scaled_dot_product_attention

    def attended(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *rest: Any, **more: Any
    ) -> Any:
        if mapping.placement.on_gpu(query):
            dropout_p = 0.0
            if attn_mask is not None and attends_efficiently(query):
                attn_mask = _padded(attn_mask, query.dtype)
        return original(query, key, value, attn_mask, dropout_p, *rest, **more)

    def handler(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        with mapping.placement.inside(arguments, keywords):
            return attended(*arguments, **keywords)

    replacements.replace(F, "scaled_dot_product_attention", attended)
    mapping.handle(original, handler)


def _padded(mask: Any, dtype: torch.dtype) -> Any:
    """A mask as CUDA's attention takes it: numbers, in rows that begin at multiples of eight (`preprocess_mask` of
    aten/src/ATen/native/transformers/attention.cpp)."""
    if mask.dtype == torch.bool:
        mask = torch.where(mask, 0.0, torch.full((), -torch.inf, dtype=dtype, device=mask.device))
    if mask.stride(-1) == 1 and not any(stride % _ROW for stride in mask.stride()[:-1]):
        return mask
    length = mask.shape[-1]
    return F.pad(mask, (0, _ROW - length % _ROW))[..., :length]


def _replace_backward(replacements: Replacements, mapping: Mapping) -> None:
    """Within a backward pass the user's code runs too (hooks, checkpoints, own functions): it sees the mapping."""
    owner, name = internals.engine_runs()
    original = getattr(owner, name)

    def run(roots: Any, *arguments: Any, **keywords: Any) -> Any:
        roots = tuple(roots)
        with mapping.again(), mapping.placement.inside(roots, {}):
            return original(roots, *arguments, **keywords)

    replacements.replace(owner, name, run)
    owner, name = internals.saving_hooks()
    push = getattr(owner, name)

    def pushed(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        def packed(tensor: Any) -> Any:
            with mapping.again():
                return pack(tensor)

        push(packed, unpack)

    replacements.replace(owner, name, pushed)


def _replace_grouping(replacements: Replacements, mapping: Mapping) -> None:
    """Optimizers and gradient clipping group tensors by device, in compiled code that sees the host's only."""
    name = "_group_tensors_by_device_and_dtype"

    def group(lists: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
        groups: dict[Any, Any] = {}
        for place, first in enumerate(lists[0]):
            device = torch.device(mapping.placement.where(first))
            columns, indices = groups.setdefault((device, first.dtype), ([[] for _ in lists], []))
            for column, one in zip(columns, lists, strict=True):
                if one:
                    column.append(one[place])
            if with_indices:
                indices.append(place)
        return groups

    for module in [module for module_name, module in sys.modules.items() if module_name.startswith("torch.")]:
        if name in getattr(module, "__dict__", {}) and module is not torch._C:
            replacements.replace(module, name, group)


def _replace_loading(replacements: Replacements, mapping: Mapping) -> None:
    """A file says where each storage was, and `torch.load` puts it there; loaders need not pin what they load.

    The two functions are torch's own way to ask for both (`map_location` in all its forms goes through the second).
    """
    tracker, placement = mapping.placement.tracker, mapping.placement
    location_of, restored = serialization.location_tag, serialization.default_restore_location

    def tagged(storage: Any) -> Any:
        device = tracker.device_of_storage(untyped(storage))
        return device if device in placement.gpus else location_of(storage)

    def restore(storage: Any, location: str) -> Any:
        device = placement.wanted(location)
        if device not in placement.gpus:
            return restored(storage, location)
        tracker.place_storage(untyped(storage), device)
        return storage

    def untyped(storage: Any) -> Any:
        return getattr(storage, "_untyped_storage", storage)

    replacements.replace(serialization, "location_tag", tagged)
    replacements.replace(serialization, "default_restore_location", restore)
    from torch.utils.data._utils import pin_memory

    replacements.replace(pin_memory, "pin_memory", lambda data, device=None: data)


def _replace_reducing(replacements: Replacements, mapping: Mapping) -> None:
    """The buckets in which `DistributedDataParallel` reduces gradients are made in C++, where its parameters are."""
    kind: Any = torch.nn.parallel.DistributedDataParallel
    placement = mapping.placement

    def with_buckets(method: Callable[..., Any]) -> Callable[..., Any]:
        def made(parallel: Any, *arguments: Any, **keywords: Any) -> Any:
            where = (placement.where(one) for one in parallel.module.parameters())
            gpu = next((device for device in where if device in placement.gpus), None)
            if gpu is None:
                return method(parallel, *arguments, **keywords)
            with placement.forcing(gpu):
                return method(parallel, *arguments, **keywords)

        return made

    methods = {name: getattr(kind, name, None) for name in ("_ddp_init_helper", "_pre_forward")}
    replacements.replace_present(kind, {name: with_buckets(method) for name, method in methods.items() if method})
