"""The mode that makes `cuda` mean the simulated GPUs, in everything of torch's that takes or tells a device."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from torchmemlint.runtime import internals
from torchmemlint.runtime.simulated.placement import HOST, HOST_DEVICE, Placement

Tensor = torch.Tensor
Handler = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]

_CUDA_TYPE = re.compile(r"^torch\.cuda\.(\w+)Tensor$")
_DTYPES = {
    "Float": torch.float32,
    "Double": torch.float64,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Long": torch.int64,
    "Int": torch.int32,
    "Short": torch.int16,
    "Char": torch.int8,
    "Byte": torch.uint8,
    "Bool": torch.bool,
}


class Mapping(TorchFunctionMode):
    """While entered, programs written for CUDA run on tagged tensors of the host."""

    def __init__(self, placement: Placement) -> None:
        super().__init__()
        self.placement = placement
        self._handlers: dict[Any, Handler] = {
            Tensor.device.__get__: self._device,
            Tensor.is_cuda.__get__: self._is_cuda,  # type: ignore[attr-defined]
            Tensor.is_cpu.__get__: self._is_cpu,  # type: ignore[attr-defined]
            Tensor.get_device: self._get_device,
            torch.get_device: self._get_device,
            Tensor.to: self._to,
            Tensor.cuda: self._cuda,
            Tensor.cpu: self._cpu,
            Tensor.type: self._type,
            Tensor.type_as: self._type_as,
            Tensor.pin_memory: self._pin_memory,
            Tensor.is_pinned: self._is_pinned,
            Tensor.numpy: self._numpy,
            Tensor.__array__: self._numpy,
            Tensor.__repr__: self.represent,
            Tensor.__deepcopy__: self._deepcopy,
            torch.device: self._numbered,
            internals.parse_to(): self._parsed,
            torch.as_tensor: self._as_tensor,
            torch.asarray: self._as_tensor,
        }
        self._constructors = internals.device_constructors()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """While entered, code of the user's that torch calls back out of one of its functions sees the mapping too."""
        if internals.has_function_mode(self):
            yield
        else:
            with self:
                yield

    def handle(self, function: Any, handler: Handler) -> None:
        """Let a handler stand in for one more function."""
        self._handlers[function] = handler

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None
    ) -> Any:
        """One call of a function of torch's."""
        handler = self._handlers.get(function)
        if handler is not None:
            return handler(function, arguments, keywords or {})
        return self.call(function, arguments, keywords or {})

    def call(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call a function with its device, if it was given one, taken out."""
        device = keywords.get("device")
        if device is None and function in self._constructors:
            device = internals.default_device()
        placement = self.placement
        pinned = bool(keywords.get("pin_memory"))
        if device is None or isinstance(device, Tensor):
            if not pinned:
                with placement.inside(arguments, keywords):
                    return function(*arguments, **keywords)
            target = None
        else:
            target = placement.wanted(device)
            keywords = {**keywords, "device": HOST_DEVICE if target in placement.gpus else device}
        if pinned:
            keywords = {name: value for name, value in keywords.items() if name != "pin_memory"}
        with placement.inside(arguments, keywords), placement.forcing(target):
            result = function(*arguments, **keywords)
        if pinned and isinstance(result, Tensor):
            placement.pin(result)
        return result

    @staticmethod
    def _numbered(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> torch.device:
        """`torch.device(0)` is the accelerator's first, which torch would ask for."""
        if len(arguments) == 1 and not keywords and type(arguments[0]) is int:
            return torch.device("cuda", arguments[0])
        device: torch.device = function(*arguments, **keywords)
        return device

    @staticmethod
    def _parsed(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """`module.to(0)` likewise."""
        named = {name: torch.device("cuda", one) if type(one) is int else one for name, one in keywords.items()}
        return function(*(torch.device("cuda", one) if type(one) is int else one for one in arguments), **named)

    # --- what a tensor tells

    def _device(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        device = self.placement.gpus.get(self.placement.where(arguments[0]))
        return function(*arguments, **keywords) if device is None else device

    def _is_cuda(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        return self.placement.on_gpu(arguments[0])

    def _is_cpu(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        return not self.placement.on_gpu(arguments[0]) and function(*arguments, **keywords)

    def _get_device(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> int:
        return self.placement.number(arguments[0])

    def _numpy(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if self.placement.on_gpu(arguments[0]):
            raise TypeError(
                f"can't convert {self.placement.where(arguments[0])} device type tensor to numpy. "
                "Use Tensor.cpu() to copy the tensor to host memory first."
            )
        return function(*arguments, **keywords)

    def represent(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
        """The tensor as text, with its device."""
        text: str = function(*arguments, **keywords)
        device = self.placement.where(arguments[0])
        if device not in self.placement.gpus:
            return text
        body, bracket, rest = text.rpartition("]") if "]" in text else (text[:-1], "", ")")
        if not bracket:  # one number: what follows it begins at the first comma
            body, comma, tail = text.partition(", ")
            return f"{body}, device='{device}', {tail}" if comma else f"{text[:-1]}, device='{device}')"
        return f"{body}], device='{device}'{rest}"

    # --- moving

    def _to(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor:
        tensor, *rest = arguments
        device, dtype = keywords.get("device"), keywords.get("dtype")
        other = keywords.get("other")
        flags = []
        for one in rest:
            if isinstance(one, torch.dtype):
                dtype = one
            elif isinstance(one, Tensor):
                other = one
            elif isinstance(one, bool):
                flags.append(one)
            elif one is not None:
                device = one
        target = None if device is None else self.placement.wanted(device)
        if other is not None:
            target, dtype = self.placement.where(other), other.dtype
        copied = keywords.get("copy", flags[1] if len(flags) > 1 else False)
        return self.move(tensor, target, dtype, bool(copied), keywords.get("memory_format"))

    def _cuda(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor:
        device = keywords.get("device", arguments[1] if len(arguments) > 1 else None)
        named = device is not None and not isinstance(device, bool)
        target = self.placement.wanted(device) if named else self.placement.gpu
        return self.move(arguments[0], target, None, False, keywords.get("memory_format"))

    def _cpu(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor:
        return self.move(arguments[0], HOST, None, False, keywords.get("memory_format"))

    def _type_as(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor:
        tensor, other = (*arguments, *keywords.values())
        return self.move(tensor, self.placement.where(other), other.dtype, False, None)

    def _type(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        tensor = arguments[0]
        named = keywords.get("dtype", arguments[1] if len(arguments) > 1 else None)
        if named is None:
            name = function(tensor)
            return name.replace("torch.", "torch.cuda.", 1) if self.placement.on_gpu(tensor) else name
        if isinstance(named, torch.dtype):
            return self.move(tensor, None, named, False, None)
        found = _CUDA_TYPE.match(named if isinstance(named, str) else f"{named.__module__}.{named.__name__}")
        if found is not None:
            return self.move(tensor, self.placement.gpu, _DTYPES[found[1]], False, None)
        with self.placement.forcing(HOST):
            return function(tensor, named)

    def move(
        self, tensor: Tensor, target: str | None, dtype: torch.dtype | None, copied: bool, memory_format: Any
    ) -> Tensor:
        """A tensor on a device, of a type; itself where nothing changes."""
        source = self.placement.where(tensor)
        target = target or source
        dtype = dtype or tensor.dtype
        options = {} if memory_format is None else {"memory_format": memory_format}
        if target == source:
            with self.placement.forcing(target):
                return tensor.to(dtype=dtype, copy=copied, **options)
        if tensor.requires_grad and torch.is_grad_enabled():
            moved: Tensor = _Move.apply(tensor, self.placement, source, target, dtype, options)
            return moved
        with self.placement.forcing(target):
            return self.across(tensor, target, dtype, options)

    def across(self, tensor: Tensor, target: str, dtype: torch.dtype, options: dict[str, Any]) -> Tensor:
        """The copy of a tensor on the other device."""
        return tensor.to(dtype=dtype, copy=True, **options)

    # --- pinned memory, copies

    def _pin_memory(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor:
        tensor: Tensor = arguments[0]
        if self.placement.on_gpu(tensor):
            raise RuntimeError(f"cannot pin '{tensor.type()}' only dense CPU tensors can be pinned")
        if self.placement.is_pinned(tensor):
            return tensor
        with self.placement.forcing(HOST):
            result = tensor.clone()
        self.placement.pin(result)
        return result

    def _is_pinned(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        return self.placement.is_pinned(arguments[0])

    def _deepcopy(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Storages are copied below the dispatcher; the copy is tagged when it is there."""
        source = self.placement.where(arguments[0])
        result = function(*arguments, **keywords)
        if isinstance(result, Tensor) and source in self.placement.gpus and not self.placement.on_gpu(result):
            self.placement.tracker.place(result, source)
        return result

    def _as_tensor(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        data = arguments[0] if arguments else keywords.get("data", keywords.get("obj"))
        device = keywords.get("device")
        if isinstance(data, Tensor):
            target = None if device is None else self.placement.wanted(device)
            return self.move(data, target, keywords.get("dtype"), bool(keywords.get("copy")), None)
        return self.call(function, arguments, keywords)


class _Move(torch.autograd.Function):
    """A move between devices that backward undoes."""

    @staticmethod
    def forward(
        context: Any, tensor: Tensor, placement: Placement, source: str, target: str, dtype: Any, options: Any
    ) -> Tensor:
        """The copy, on the device asked for."""
        context.back = placement, target, source, tensor.dtype
        with placement.forcing(target), internals.without_function_modes():
            return tensor.to(dtype=dtype, copy=True, **options)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        """The gradient goes back to where the tensor was."""
        placement, source, target, dtype = context.back
        (gradient,) = gradients
        moved: Any = _Move.apply(gradient, placement, source, target, dtype, {})
        return moved, None, None, None, None, None


@contextlib.contextmanager
def mapped(mapping: Mapping) -> Iterator[None]:
    """Enter the mode, and leave behind no default device that the program set meanwhile."""
    before = internals.default_device()
    mapping.__enter__()
    try:
        yield
    finally:
        changed = internals.default_device() != before
        if changed:
            torch.set_default_device(None)
        mapping.__exit__(None, None, None)
        if changed and before is not None:
            torch.set_default_device(before)
