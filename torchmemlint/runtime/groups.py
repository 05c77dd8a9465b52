"""Process groups of a simulated GPU: what is asked of NCCL is done by Gloo, with tensors of the host.

A simulated GPU's tensors are the host's, so that Gloo takes them as they are. What it lacks and NCCL has is made of
what it has, so that the program's results are right; the buffers that this takes for a moment are not the program's.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torchmemlint.runtime import internals

_DRAWING = "torch.distributed.tensor._random"


@contextlib.contextmanager
def gloo_for_nccl() -> Iterator[None]:
    """While entered, a group asked of NCCL is one of Gloo; one that is left behind is ended."""
    if not torch.distributed.is_available():
        yield
        return
    distributed: Any = torch.distributed
    with contextlib.ExitStack() as stack:
        for name, replaced in _REPLACED.items():
            original = getattr(distributed, name, None)
            if original is not None:
                _everywhere(stack, name, original, functools.wraps(original)(replaced(original)))
        stack.callback(_leave_group)
        yield


def _everywhere(stack: contextlib.ExitStack, name: str, original: Any, replacement: Any) -> None:
    """Put a function in the place of another in all the modules of torch's that have it."""
    for module in [one for key, one in sys.modules.items() if key.startswith("torch.distributed")]:
        if vars(module).get(name) is original:
            setattr(module, name, replacement)
            stack.callback(setattr, module, name, original)


class _HostsGenerator:
    """Takes the place of what asks a GPU for random numbers of distributed tensors: there, it is the host that draws.

    torch's own moves the state of a generator to the GPU, below all that simulates one.
    """

    distribute_region_enabled = False

    def _distribute_region(self, spec: Any, generator: Any = None) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def _draw_on_the_host() -> None:
    with contextlib.suppress(ImportError):  # releases before 2.5 have it elsewhere
        importlib.import_module(_DRAWING)._rng_tracker = _HostsGenerator()  # type: ignore[attr-defined]
        internals.keep_whole_in_shape(torch.ops.aten.uniform_.default)


def _leave_group() -> None:
    drawing = sys.modules.get(_DRAWING)
    if drawing is not None and isinstance(drawing._rng_tracker, _HostsGenerator):
        drawing._rng_tracker = None  # type: ignore[attr-defined]
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _of_gloo(backend: Any) -> Any:
    return "gloo" if backend is None or "nccl" in str(backend) else backend


def _initializing(original: Callable[..., Any]) -> Callable[..., Any]:
    def init_process_group(backend: Any = None, *arguments: Any, **keywords: Any) -> Any:
        keywords.pop("device_id", None)  # binds the group to a GPU, which Gloo refuses
        result = original(_of_gloo(backend), *arguments, **keywords)
        _draw_on_the_host()
        return result

    return init_process_group


def _grouping(original: Callable[..., Any]) -> Callable[..., Any]:
    def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, *rest: Any, **keywords: Any) -> Any:
        keywords.pop("device_id", None)
        if backend is not None:
            backend = _of_gloo(backend)
        return original(ranks, timeout, backend, *rest, **keywords)

    return new_group


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, **keywords: Any) -> Any:
        return original(group, async_op, None, **keywords)  # which GPU's queue waits is NCCL's matter

    return barrier


def _averaging(original: Callable[..., Any]) -> Callable[..., Any]:
    """Gloo knows no average: it is a sum, divided."""

    def reduced(*arguments: Any, **keywords: Any) -> Any:
        average = torch.distributed.ReduceOp.AVG
        if average not in (*arguments[1:], *keywords.values()):
            return original(*arguments, **keywords)
        total = torch.distributed.ReduceOp.SUM
        arguments = (arguments[0], *(total if one == average else one for one in arguments[1:]))
        keywords = {name: total if one == average else one for name, one in keywords.items()}
        result: Any = arguments[0] if arguments else keywords.get("tensor", keywords.get("output"))
        work = original(*arguments, **keywords)
        if work is not None:
            work.wait()
        result.div_(torch.distributed.get_world_size(keywords.get("group")))
        return work

    return reduced


_REPLACED: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "init_process_group": _initializing,
    "new_group": _grouping,
    "barrier": _waiting,
    "all_reduce": _averaging,
    "reduce_scatter_tensor": _averaging,
    "is_nccl_available": lambda original: lambda: True,
}
