"""Pictures of values that can be compared: two are equal where the values are, bit for bit.

A picture leaves out what a fix is allowed to change: whether a tensor requires a gradient, and what graph hangs on it.
"""

from __future__ import annotations

import ctypes
import types
from collections import deque
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.data import DataLoader

Image = Any
PLAIN = (bool, int, str, bytes, type(None), torch.dtype, torch.Size, torch.device)
OPAQUE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, DataLoader)


def image_of(value: Any, own_module: str, seen: dict[int, int] | None = None) -> Image:
    """A picture of a value. Classes of the module `own_module` are pictured with their attributes."""
    seen = {} if seen is None else seen
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, float):
        return repr(value)  # not a number equals itself
    if isinstance(value, torch.Tensor):
        return tensor_image(value)
    if hasattr(value, "tobytes"):
        return type(value).__name__, str(value.dtype), value.shape, value.tobytes()
    if id(value) in seen:
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)

    def inner(part: Any) -> Image:
        return image_of(part, own_module, seen)

    name = type(value).__name__
    if isinstance(value, torch.nn.Module):
        state = {key: part for key, part in vars(value).items() if not key.startswith("_") and key != "training"}
        tensors = [(key, tensor_image(part)) for key, part in value.state_dict(keep_vars=True).items()]
        return name, tensors, [(key, inner(part)) for key, part in state.items()], list(map(inner, value.children()))
    if isinstance(value, torch.optim.Optimizer):
        return name, inner(value.state_dict())
    if isinstance(value, Mapping):
        return name, [(inner(key), inner(part)) for key, part in value.items()]
    if isinstance(value, list | tuple | deque):
        return name, [inner(part) for part in value]
    if isinstance(value, set | frozenset):
        return name, sorted(repr(inner(part)) for part in value)
    if isinstance(value, type):
        return _class_image(value, own_module, inner)
    if isinstance(value, OPAQUE):
        return name
    return name, [(key, inner(part)) for key, part in getattr(value, "__dict__", {}).items()]


def tensor_image(tensor: torch.Tensor) -> Image:
    """Type, shape and bytes."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    size = flat.numel() * flat.element_size()
    return "tensor", str(tensor.dtype), tuple(tensor.shape), ctypes.string_at(flat.data_ptr(), size) if size else b""


def _class_image(value: type, own_module: str, inner: Any) -> Image:
    if value.__module__ != own_module:
        return "class", value.__qualname__
    state = [(key, inner(part)) for key, part in vars(value).items() if not key.startswith("__")]
    return "class", value.__qualname__, state


def difference(one: Image, other: Image, path: str = "") -> str:
    """Where two pictures differ first, in words; empty where they are equal."""
    if one == other:
        return ""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        for index, (first, second) in enumerate(zip(one, other, strict=True)):
            if first != second:
                return difference(first, second, f"{path}[{index}]")
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            if one[key] != other[key]:
                return difference(one[key], other[key], f"{path}.{key}")
    return f"{path}: {_short(one)} is not {_short(other)}"


def _short(image: Image) -> str:
    text = repr(image)
    return text if len(text) <= 200 else f"{text[:200]}…"
