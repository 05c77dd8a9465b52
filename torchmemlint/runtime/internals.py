"""Every private interface of torch that this package uses, each behind one name, with what stands in where it lacks.

Known good with torch 2.2, 2.6 and 2.13. A release that moves one of these breaks this file and no other.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import overrides
from torch.utils import _device, _python_dispatch

RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])
"""The release of torch, such as (2, 13)."""

DispatchMode: Any = _python_dispatch.TorchDispatchMode
"""The mode that sees every operation below autograd (2.2 to 2.13: the same module)."""

_C: Any = torch._C
_Storage: Any = torch.UntypedStorage
_NO_SEQUENCE = 1 << 63
"""Nodes that accumulate gradients carry the largest number there is instead of a place in the forward."""


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """The storage that holds a tensor's values; None for tensors without one (sparse, functorch wrappers).

    That of a distributed tensor is its local part's.
    """
    if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
        tensor = local_of(tensor)
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def parts_of(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The dense tensors that a sparse one is made of; nothing for others."""
    try:
        if tensor.layout is torch.sparse_coo:
            return tensor._indices(), tensor._values()
        if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
            return tensor.crow_indices(), tensor.col_indices(), tensor.values()
        if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
            return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    except (NotImplementedError, RuntimeError):
        pass
    return ()


def local_of(tensor: torch.Tensor) -> torch.Tensor:
    """A distributed tensor's part that is here; any other tensor itself."""
    local = getattr(tensor, "_local_tensor", None)
    return local if isinstance(local, torch.Tensor) else tensor


def storage_key(storage: torch.UntypedStorage) -> int:
    """A number that tells living storages apart: the address of the storage's implementation."""
    key: int = storage._cdata
    return key


def bytes_of(storage: torch.UntypedStorage) -> int:
    """The bytes that a storage has, or that it stands for where no memory backs it and it was resized."""
    stands_for: int | None = getattr(storage, "stands_for", None)
    return storage.nbytes() if stands_for is None else stands_for


def watched(storage: torch.UntypedStorage, ended: Callable[[], None]) -> Any:
    """Have `ended` called when a storage is freed, for as long as what this gives is kept."""
    if _LOSES_WRAPPERS:
        return _Watch(storage, ended)
    return weakref.ref(storage, lambda _: ended())


_LOSES_WRAPPERS = (2, 3) <= RELEASE < (2, 13)
"""Seen with torch 2.6, and neither with 2.2 nor 2.13: after `torch.save`, the next garbage collection drops the Python
side of storages that live on."""


class _Watch:
    """Looks on at a storage by a new Python side where it has lost the first.

    A weak reference of torch's own would say as well whether it lives, but then its Python side never ends.
    """

    __slots__ = ("_ended", "_key", "_reference")

    def __init__(self, storage: torch.UntypedStorage, ended: Callable[[], None]) -> None:
        self._key = storage_key(storage)
        self._ended = ended
        self._reference: weakref.ref[Any] | None = weakref.ref(storage, self._gone)

    def _gone(self, _: Any) -> None:
        self._reference = None
        if _C._storage_Use_Count(self._key) > 1:  # the Python side that goes is one
            storage = _Storage._new_with_weak_ptr(self._key)
            self._reference = weakref.ref(storage, self._gone)
        else:
            self._ended()


def is_composite(operation: Any) -> bool:
    """Whether an operation is only made of others (its allocations are theirs)."""
    return operation.namespace == "aten" and bool(
        _C._dispatch_has_kernel_for_dispatch_key(operation.name(), "CompositeImplicitAutograd")
    )


def parse_to() -> Any:
    """What reads the arguments of `Module.to`."""
    return _C._nn._parse_to


def backward_node() -> Any | None:
    """The node of the graph that the engine is running on this thread, None outside backward."""
    return _C._current_autograd_node()


def graph_of(tensor: torch.Tensor) -> Any | None:
    """The node that made a tensor; None for leaves, and for what is no whole tensor (yet, or any more).

    Nor is a view that was made without gradients, of a tensor that gets some later: asking torch for its node raises
    (Autograd mechanics, "In-place operations with autograd"), though nothing that the program does with it may.
    """
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def next_sequence_number() -> int:
    """The number that the next node made on this thread will carry."""
    number: int = _C._autograd._get_sequence_nr()
    return number


def sequence_number(node: Any) -> int | None:
    """The number a node was given when the forward made it; None for nodes that accumulate gradients."""
    number: int = node._sequence_nr()
    return number if number < _NO_SEQUENCE else None


_saved_names: dict[type, tuple[str, ...]] = {}


def leaf_of(node: Any) -> torch.Tensor | None:
    """The leaf, such as a parameter, that a node of the graph accumulates the gradient of; it is kept alive by it."""
    leaf = getattr(node, "variable", None) if type(node).__name__ == "AccumulateGrad" else None
    return leaf if isinstance(leaf, torch.Tensor) else None


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


def is_inplace_view(operation: Any) -> bool:
    """Whether an operation changes a tensor's shape but not its storage's values (`squeeze_`, `set_`, `resize_`)."""
    return torch.Tag.inplace_view in operation.tags


def register_meta_kernels() -> None:
    """Load torch's rules for the shapes of results (some operations have theirs in Python, loaded on demand)."""


def lacks_meta_kernel(error: Exception) -> bool:
    """Whether an operation on `meta` tensors failed for want of a rule, and not because its arguments are wrong."""
    if isinstance(error, NotImplementedError | TypeError):  # a rule that takes other arguments is none
        return True
    text = str(error)
    return "meta" in text.lower() and ("not implemented" in text or "Could not run" in text)


def host_autocast() -> tuple[bool, torch.dtype]:
    """Whether autocast is on for the host, and to which type."""
    if hasattr(torch, "get_autocast_dtype"):
        return torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    return torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()  # 2.2


def set_host_autocast(enabled: bool, dtype: torch.dtype) -> None:
    """Switch it, without the checks that `torch.autocast` makes of the type."""
    if hasattr(torch, "set_autocast_dtype"):
        torch.set_autocast_enabled("cpu", enabled)
        torch.set_autocast_dtype("cpu", dtype)
    else:
        torch.set_autocast_cpu_enabled(enabled)
        torch.set_autocast_cpu_dtype(dtype)


def has_host_autocast(operation: Any) -> bool:
    """Whether the host's autocast has a kernel of its own for an operation."""
    return bool(_C._dispatch_has_kernel_for_dispatch_key(operation.name(), "AutocastCPU"))


def has_host_kernel(operation: Any) -> bool:
    """Whether an operation can be computed on the host."""
    return bool(_C._dispatch_has_kernel_for_dispatch_key(operation.name(), "CPU"))


def below_host_autocast() -> contextlib.AbstractContextManager[Any]:
    """While entered, operations go past the host's autocast."""
    guard: contextlib.AbstractContextManager[Any] = _C._ExcludeDispatchKeyGuard(
        _C.DispatchKeySet(_C.DispatchKey.AutocastCPU)
    )
    return guard


def callers_autocast(operation: Any) -> contextlib.AbstractContextManager[Any]:
    """While entered in a dispatch mode, autocast is as where the operation was called: the mode runs below it.

    Does nothing for an operation that autocast has cast already: its parts run below autocast, too.
    """
    restored = getattr(_C, "_RestorePythonTLSSnapshot", None)
    if restored is None or has_host_autocast(operation):
        return contextlib.nullcontext()
    guard: contextlib.AbstractContextManager[Any] = restored()
    return guard


def overloads(name: str) -> list[tuple[str, Any]]:
    """The forms of one of torch's operations that return what they make; none where this torch lacks it."""
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:
        return []
    found = ((overload, getattr(packet, overload)) for overload in packet.overloads())
    return [
        (overload, operation)
        for overload, operation in found
        if not operation._schema.is_mutable
        and "dimname" not in overload.lower()
        and "hacked_twin" not in overload  # TorchScript's
        and any("Tensor" in str(one.type) for one in operation._schema.arguments)
    ]


def unregister(library: Any) -> None:
    """Take away the kernels that a `torch.library.Library` holds."""
    library._destroy()


def device_constructors() -> set[Any]:
    """The functions that make tensors on the default device."""
    constructors: set[Any] = _device._device_constructors()
    return constructors


def default_device() -> torch.device | None:
    """The device that `torch.set_default_device` or `with torch.device(...)` chose; None where nothing did."""
    device: torch.device | None = _device.CURRENT_DEVICE
    return device


def without_function_modes() -> contextlib.AbstractContextManager[Any]:
    """While entered, functions of torch's go past every TorchFunctionMode."""
    disabled: contextlib.AbstractContextManager[Any] = _C.DisableTorchFunction()
    return disabled


def has_function_mode(mode: Any) -> bool:
    """Whether a TorchFunctionMode is entered and not set aside (as it is while it handles a call)."""
    stack: Any = overrides._get_current_function_mode_stack()
    return any(one is mode for one in stack)


def saving_hooks() -> tuple[Any, str]:
    """Where the function is found by which `saved_tensors_hooks` hands its two hooks to autograd."""
    return _C._autograd, "_push_saved_tensors_default_hooks"


def engine_runs() -> tuple[Any, str]:
    """Where the function is found that every backward pass goes through, as (owner, attribute)."""
    if hasattr(torch.autograd, "_engine_run_backward"):
        return torch.autograd, "_engine_run_backward"
    holder: Any = torch.autograd.Variable  # 2.2, where it is a method that cannot be replaced
    if not isinstance(holder._execution_engine, _Engine):
        holder._execution_engine = _Engine(holder._execution_engine)
    return holder._execution_engine, "run_backward"


class _Engine:
    """Stands before torch's engine, so that its `run_backward` can be replaced."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.run_backward = engine.run_backward

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def is_custom_node(node: Any) -> bool:
    """Whether a node belongs to a user's `autograd.Function` (its `ctx` is the node), not to one of torch's own."""
    return isinstance(node, _C._FunctionBase)


def record_history(most_entries: int) -> bool:
    """Have the CUDA allocator write down what it does, with the Python lines; False where this torch cannot."""
    switch = getattr(torch.cuda.memory, "_record_memory_history", None)
    if switch is None:
        return False
    try:
        switch(enabled="all", context="alloc", stacks="python", max_entries=most_entries)
    except (RuntimeError, TypeError):
        return False
    return True


def end_history() -> dict[str, Any] | None:
    """The allocator's segments and what it wrote down, which it does no more; None where this torch gives none."""
    try:
        snapshot: dict[str, Any] = torch.cuda.memory._snapshot()
        torch.cuda.memory._record_memory_history(enabled=None)
    except (AttributeError, RuntimeError, TypeError):
        return None
    return snapshot


def optimizers() -> list[str]:
    """The names of torch.optim's own optimizers for dense gradients, but the one that calls a closure again."""
    every = vars(torch.optim).items()
    kinds = [name for name, one in every if isinstance(one, type) and issubclass(one, torch.optim.Optimizer)]
    return [name for name in kinds if name not in ("Optimizer", "LBFGS", "SparseAdam")]


def decide_on_foreach(decide: Callable[..., tuple[bool, bool]]) -> None:
    """Let a function say whether optimizers of which nobody says it are fused, and whether they update all at once."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("torch.optim.") and hasattr(
            module, "_default_to_fused_or_foreach"
        ):
            vars(module)["_default_to_fused_or_foreach"] = decide


def when_cuda_starts(action: Callable[[], None]) -> None:
    """Have something done when the process first uses CUDA; at once where it has."""
    torch.cuda._lazy_call(action)


def on_out_of_memory(observer: Callable[[int, int, int, int], None]) -> bool:
    """Have a function called before the error is raised; False where this torch cannot. It stays for good.

    It is given the device, the bytes that were asked for, the device's bytes, and what of these was free.
    """
    attach = getattr(_C, "_cuda_attach_out_of_memory_observer", None)
    if attach is None:
        return False
    attach(observer)
    return True


def snapshot() -> dict[str, Any]:
    """The allocator's segments and its history until now."""
    taken: dict[str, Any] = torch.cuda.memory._snapshot()
    return taken


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Operations inside are seen by no mode: neither a tracker's nor one that maps devices."""
    with _C._DisableTorchDispatch(), _C.DisableTorchFunction():
        yield


def is_fake(tensor: torch.Tensor) -> bool:
    """Whether a tensor has a shape and no values."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(tensor, FakeTensor) or tensor.is_meta


def have_operations_of_their_own(kinds: Iterable[type[torch.Tensor]]) -> bool:
    """Whether a tensor's class among these carries operations out itself, as that of distributed tensors does."""
    return any(one.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for one in kinds)


def works_out_shapes() -> bool:
    """Whether torch only works out what an operation would give, as distributed tensors do before they compute."""
    return _C._get_dispatch_mode(_C._TorchDispatchModeKey.FAKE) is not None


def keep_whole_in_shape(operation: Any) -> None:
    """Let fake tensors ask an operation's own rule for shapes, and not what it is made of.

    `uniform_` is made of an operation that is given a device, which fails for a GPU that torch was built without.
    """
    table = importlib.import_module("torch._decomp").meta_table
    table.setdefault(operation, operation)


def fake_store() -> Any:
    """What a process group of the backend `fake` is made with, which is known from here on."""
    return importlib.import_module("torch.testing._internal.distributed.fake_pg").FakeStore()


def fully_shard() -> Callable[..., Any]:
    """What shards a module's parameters (FSDP2). Raises RuntimeError where this torch has none."""
    try:
        function: Callable[..., Any] = importlib.import_module("torch.distributed.fsdp").fully_shard
    except (ImportError, AttributeError):
        raise RuntimeError("this torch has no fully_shard: it needs torch 2.6") from None
    return function
