"""Every private interface of torch that this package uses, each behind one name, with what stands in where it lacks.

Known good with torch 2.2, 2.6 and 2.13. A release that moves one of these breaks this file and no other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _python_dispatch

DispatchMode: Any = _python_dispatch.TorchDispatchMode
"""The mode that sees every operation below autograd (2.2 to 2.13: the same module)."""

_C: Any = torch._C
_NO_SEQUENCE = 1 << 63
"""Nodes that accumulate gradients carry the largest number there is instead of a place in the forward."""


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """The storage that holds a tensor's values; None for tensors without one (sparse, functorch wrappers)."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def storage_key(storage: torch.UntypedStorage) -> int:
    """A number that tells living storages apart: the address of the storage's implementation."""
    key: int = storage._cdata
    return key


def is_composite(operation: Any) -> bool:
    """Whether an operation is only made of others (its allocations are theirs)."""
    return operation.namespace == "aten" and bool(
        _C._dispatch_has_kernel_for_dispatch_key(operation.name(), "CompositeImplicitAutograd")
    )


def backward_node() -> Any | None:
    """The node of the graph that the engine is running on this thread, None outside backward."""
    return _C._current_autograd_node()


def next_sequence_number() -> int:
    """The number that the next node made on this thread will carry."""
    number: int = _C._autograd._get_sequence_nr()
    return number


def sequence_number(node: Any) -> int | None:
    """The number a node was given when the forward made it; None for nodes that accumulate gradients."""
    number: int = node._sequence_nr()
    return number if number < _NO_SEQUENCE else None


_saved_names: dict[type, tuple[str, ...]] = {}


def saved_tensors(node: Any) -> Iterator[torch.Tensor]:
    """The tensors that a node keeps for its backward; none when they were freed already."""
    kind = type(node)
    names = _saved_names.get(kind)
    if names is None:
        names = tuple(name for name in dir(kind) if name.startswith("_saved_"))
        _saved_names[kind] = names = (*names, "saved_tensors") if hasattr(kind, "saved_tensors") else names
    for name in names:
        try:
            value = getattr(node, name)
        except (RuntimeError, AttributeError):  # freed by a backward, or never filled
            continue
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from (one for one in value if isinstance(one, torch.Tensor))


def foreach_chooser() -> tuple[str, Callable[..., tuple[bool, bool]]] | None:
    """The name and the function by which torch's optimizers choose their foreach form, None where there is none."""
    import torch.optim.optimizer as module

    name = "_default_to_fused_or_foreach"
    chooser = getattr(module, name, None)
    return (name, chooser) if chooser is not None else None


def record_history(enabled: bool) -> bool:
    """Switch the CUDA allocator's own history on or off; False where this torch has none."""
    switch = getattr(torch.cuda.memory, "_record_memory_history", None)
    if switch is None:
        return False
    switch(enabled="all" if enabled else None)
    return True


def allocator_snapshot() -> dict[str, Any] | None:
    """The CUDA allocator's segments and history, None where this torch gives none."""
    snapshot = getattr(torch.cuda.memory, "_snapshot", None)
    return snapshot() if snapshot is not None else None


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Operations inside are seen by no mode: neither a tracker's nor one that maps devices."""
    with _C._DisableTorchDispatch(), _C.DisableTorchFunction():
        yield


def is_fake(tensor: torch.Tensor) -> bool:
    """Whether a tensor has a shape and no values."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(tensor, FakeTensor) or tensor.is_meta
