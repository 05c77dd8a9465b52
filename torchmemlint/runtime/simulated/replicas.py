"""What `DataParallel` does between GPUs: its compiled copies and sums, made of the operations that the tracker sees.

The layouts are those of `torch/csrc/cuda/comm.cpp`: replicas' parameters are views of buffers of up to 10 MiB, what is
scattered is a copy of each chunk, what is gathered one new tensor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._utils import _flatten_dense_tensors, _get_device_index, _take_tensors, _unflatten_dense_tensors
from torch.nn.parallel import comm

from torchmemlint.runtime.simulated.mapping import Mapping
from torchmemlint.runtime.simulated.replacing import Replacements

Tensor = torch.Tensor
_BUFFER = 10485760


def replace_replication(replacements: Replacements, mapping: Mapping) -> None:
    """Put everything in place. Replicas run one after another, in the thread that the tracker watches."""
    replacements.replace_present(
        comm,
        {
            "scatter": _scatter,
            "gather": _gather,
            "broadcast": _broadcast,
            "broadcast_coalesced": _broadcast_coalesced,
            "reduce_add": _reduce_add,
        },
    )
    replacements.replace_present(torch.nn.parallel._functions, {"_get_stream": lambda device: None})
    apply = _one_after_another(mapping)
    parallel: Any = torch.nn.parallel
    for owner in (parallel, parallel.data_parallel.__globals__, parallel.DataParallel.forward.__globals__):
        if isinstance(owner, dict):
            _replace_global(replacements, owner, "parallel_apply", apply)
        else:
            replacements.replace(owner, "parallel_apply", apply)
    # `DataParallel.parallel_apply` looks the function up in the globals of its own module.


def _replace_global(replacements: Replacements, names: dict[str, Any], name: str, value: Any) -> None:
    before = names[name]
    names[name] = value
    replacements.callback(names.__setitem__, name, before)


def _on(device: Any) -> torch.device:
    number = _get_device_index(device, optional=True, allow_cpu=True)
    return torch.device("cpu") if number < 0 else torch.device("cuda", number)


def _scatter(
    tensor: Tensor,
    devices: Any = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    if out is not None:
        chunks = tensor.split([one.size(dim) for one in out], dim)
        return tuple(one.copy_(chunk) for one, chunk in zip(out, chunks, strict=True))
    where = [_on(device) for device in devices]
    pieces = tensor.chunk(len(where), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(
        piece.to(device, copy=tensor.device.type == "cpu") for piece, device in zip(pieces, where, strict=False)
    )


def _gather(tensors: Any, dim: int = 0, destination: Any = None, *, out: Tensor | None = None) -> Tensor:
    tensors = list(tensors)
    if dim < 0:
        dim += tensors[0].dim()
    if out is None:
        size = list(tensors[0].shape)
        size[dim] = sum(one.size(dim) for one in tensors)
        out = torch.empty(size, dtype=tensors[0].dtype, device=_on(destination))
    for part, one in zip(out.split([one.size(dim) for one in tensors], dim), tensors, strict=True):
        part.copy_(one)
    return out


def _broadcast(tensor: Tensor, devices: Any = None, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    if out is not None:
        return tuple(one if one is tensor else one.copy_(tensor) for one in out)
    return tuple(tensor.to(_on(device)) for device in devices)


def _broadcast_coalesced(tensors: Sequence[Tensor], devices: Any, buffer_size: int = _BUFFER) -> list[list[Tensor]]:
    """To the first device, where they are, the tensors themselves; to each other one, views of flat copies."""
    _first, *others = [_on(device) for device in devices]
    results = [[one.detach() for one in tensors], *([] for _ in others)]
    copies: list[dict[int, Tensor]] = [{} for _ in others]
    for chunk in _take_tensors(tensors, buffer_size):
        flat = _flatten_dense_tensors(chunk)
        for device, copied in zip(others, copies, strict=True):
            views = _unflatten_dense_tensors(flat.to(device), chunk)
            copied.update((id(one), view.detach()) for one, view in zip(chunk, views, strict=True))
    for result, copied in zip(results[1:], copies, strict=True):
        result.extend(copied[id(one)] for one in tensors)
    return results


def _reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    number = _get_device_index(destination, optional=True)
    root = next((one for one in inputs if one.get_device() == number), None)
    if root is None:
        raise RuntimeError("reduce_add expects destination to be on the same GPU with one of the tensors")
    if len(inputs) == 1:
        return root
    result = root.clone()
    for one in inputs:
        if one is not root:
            result.add_(one.to(root.device))
    return result


def _one_after_another(mapping: Mapping) -> Callable[..., list[Any]]:
    def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> list[Any]:
        keywords = kwargs_tup if kwargs_tup is not None else [{}] * len(modules)
        where = [None] * len(modules) if devices is None else devices
        results = []
        for module, given, named, device in zip(modules, inputs, keywords, where, strict=True):
            arguments = given if isinstance(given, list | tuple) else (given,)
            with _device(mapping, device, arguments):
                results.append(module(*arguments, **named))
        return results

    return parallel_apply


@contextlib.contextmanager
def _device(mapping: Mapping, device: Any, arguments: Any) -> Iterator[None]:
    placement = mapping.placement
    number = -1 if device is None else _get_device_index(device, True)
    if device is None:
        number = next((placement.number(one) for one in arguments if isinstance(one, Tensor)), -1)
    with placement.chosen(number):
        yield
