"""What `torch.cuda`, `torch.accelerator` and their neighbours answer while a GPU is simulated.

Where torch's own Python only passes on what the compiled half says (`memory_stats`, `memory_summary`, snapshots),
that half is replaced, and the Python stays torch's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from torchmemlint.runtime.simulated import streams
from torchmemlint.runtime.simulated.allocator import CachingAllocator
from torchmemlint.runtime.simulated.cards import Card
from torchmemlint.runtime.simulated.history import Histories
from torchmemlint.runtime.simulated.mapping import _DTYPES, Mapping
from torchmemlint.runtime.simulated.placement import Placement
from torchmemlint.runtime.simulated.replacing import Replacements


def replace_torch(
    replacements: Replacements, allocators: Sequence[CachingAllocator], card: Card, mapping: Mapping
) -> None:
    """Put everything in place, an allocator for each GPU; leaving the replacements puts torch's own back."""
    placement = mapping.placement
    histories = Histories(allocators)
    stream_class = streams.standing_in(torch.cuda.Stream, streams.Stream)
    event_class = streams.standing_in(torch.cuda.Event, streams.Event)
    queues = [streams.Stream(device) for device in placement.gpus.values()]

    def stream(device: Any = None) -> streams.Stream:
        return queues[_index(placement, device)]

    answers = {
        **_state(card, placement),
        **_memory(allocators, placement, histories),
        **_random(len(queues)),
        "Stream": stream_class,
        "ExternalStream": stream_class,
        "Event": event_class,
        "current_stream": stream,
        "default_stream": stream,
        "set_stream": lambda stream: None,
        "stream": lambda stream: contextlib.nullcontext(),
        "StreamContext": lambda stream: contextlib.nullcontext(),
        "is_current_stream_capturing": lambda: False,
    }
    modules = [torch.cuda, torch.cuda.memory, torch.cuda.random, torch.cuda.streams]
    for module in modules:
        replacements.replace_present(module, answers)
    replacements.replace_present(torch.backends.cuda, {"is_built": lambda: True})
    # The host has no recurrent layers of cuDNN's: those written out of smaller operations run.
    replacements.replace_present(torch.backends.cudnn, {"is_acceptable": lambda tensor: False})
    replacements.replace_present(torch.cuda, {f"{name}Tensor": _tensor_type(name, placement) for name in _DTYPES})
    for name, value in _compiled(allocators, histories).items():
        replacements.replace(torch._C, name, value)
    replacements.replace_present(
        torch.cuda.nvtx,
        {
            "range_push": lambda message: 0,
            "range_pop": lambda: 0,
            "range_start": lambda message: 0,
            "range_end": lambda number: None,
            "mark": lambda message: None,
        },
    )
    _replace_accelerator(replacements, allocators, placement, stream)
    replacements.replace(torch.Tensor, "record_stream", lambda self, stream: None)
    generator = streams.generator_class(torch.Generator, placement.gpus, placement.wanted)
    replacements.replace(torch, "Generator", generator)
    _replace_compiler(replacements)


def _index(placement: Placement, device: Any) -> int:
    """The number of the GPU that a function is asked about: the current one, where it is not told."""
    gpu = placement.gpus.get(placement.wanted(device)) if device is not None else None
    return placement.current if gpu is None else gpu.index


def _device_checked(placement: Placement, answer: Callable[[int], Any]) -> Callable[..., Any]:
    """A function that is asked about a GPU, and complains where there is no such one."""

    def told(device: Any = None) -> Any:
        return answer(_index(placement, device))

    return told


def _choosing(placement: Placement) -> dict[str, Any]:
    """Which GPU is the current one."""

    def choose(device: Any) -> None:
        if not (isinstance(device, int) and device < 0):
            placement.current = _index(placement, device)

    def exchange(device: int) -> int:
        before = placement.current
        choose(device)
        return before

    return {
        "current_device": lambda: placement.current,
        "set_device": choose,
        "_exchange_device": exchange,
        "_maybe_exchange_device": exchange,
    }


def _state(card: Card, placement: Placement) -> dict[str, Any]:
    major, minor = card.capability
    properties = SimpleNamespace(
        name=card.name,
        major=major,
        minor=minor,
        total_memory=card.total,
        multi_processor_count=card.processors,
        warp_size=card.warp,
        max_threads_per_multi_processor=card.threads,
        is_integrated=False,
        is_multi_gpu_board=False,
        gcnArchName="",
    )
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "device_count": lambda: len(placement.gpus),
        **_choosing(placement),
        "synchronize": _device_checked(placement, lambda number: None),
        "ipc_collect": lambda: None,
        "get_device_name": _device_checked(placement, lambda number: card.name),
        "get_device_capability": _device_checked(placement, lambda number: card.capability),
        "get_device_properties": _device_checked(placement, lambda number: properties),
        "can_device_access_peer": lambda device, peer: _index(placement, device) != _index(placement, peer),
        "is_bf16_supported": lambda including_emulation=True: including_emulation or card.has_bfloat16,
        "is_tf32_supported": lambda: card.capability >= (8, 0),
        "get_arch_list": lambda: [f"sm_{major}{minor}"],
        "get_gencode_flags": lambda: f"-gencode compute=compute_{major}{minor},code=sm_{major}{minor}",
        "get_sync_debug_mode": lambda: 0,
        "set_sync_debug_mode": lambda debug_mode: None,
        "list_gpu_processes": _device_checked(placement, lambda number: f"GPU:{number}\nno processes are running"),
        "utilization": _device_checked(placement, lambda number: 0),
    }


def _memory(allocators: Sequence[CachingAllocator], placement: Placement, histories: Histories) -> dict[str, Any]:
    def free_and_total(number: int) -> tuple[int, int]:
        allocator = allocators[number]
        total = allocator.total or 0
        return max(total - allocator.reserved, 0), total

    def set_fraction(fraction: float, device: Any = None) -> None:
        if not 0 <= fraction <= 1:
            raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
        allocator = allocators[_index(placement, device)]
        allocator.limit = int((allocator.total or 0) * fraction)

    return {
        "mem_get_info": _device_checked(placement, free_and_total),
        "set_per_process_memory_fraction": set_fraction,
        "empty_cache": _emptying(allocators),
        "_record_memory_history": histories.record,
        "get_allocator_backend": lambda: "native",
    }


def _emptying(allocators: Sequence[CachingAllocator]) -> Callable[[], None]:
    def empty_cache() -> None:
        for allocator in allocators:
            allocator.empty_cache()

    return empty_cache


def _compiled(allocators: Sequence[CachingAllocator], histories: Histories) -> dict[str, Any]:
    """What the compiled half of torch says of memory."""
    return {
        "_cuda_getCurrentRawStream": lambda device: 0,  # the default stream's; extensions with kernels of their own ask
        "_cuda_memoryStats": lambda device: allocators[device].statistics(),
        "_cuda_resetPeakMemoryStats": lambda device: allocators[device].reset_peaks(),
        "_cuda_resetAccumulatedMemoryStats": lambda device: allocators[device].reset_accumulated(),
        "_cuda_memorySnapshot": lambda *arguments: histories.snapshot(),
        "_cuda_attach_out_of_memory_observer": histories.attach,
    }


def _random(count: int) -> dict[str, Any]:
    """A GPU's generator is the host's; seeding it leaves that alone, as on a GPU."""

    def set_state(state: Any, device: Any = "cuda") -> None:
        torch.set_rng_state(state)

    def set_states(states: Any) -> None:
        for state in states:
            set_state(state)

    return {
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "seed": lambda: None,
        "seed_all": lambda: None,
        "initial_seed": torch.initial_seed,
        "get_rng_state": lambda device="cuda": torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state() for _ in range(count)],
        "set_rng_state": set_state,
        "set_rng_state_all": set_states,
    }


def _replace_accelerator(
    replacements: Replacements,
    allocators: Sequence[CachingAllocator],
    placement: Placement,
    stream: Callable[..., streams.Stream],
) -> None:
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    # Asked by what chooses a device by itself, such as `fully_shard` without a mesh.
    replacements.replace_present(torch._C, {"_get_accelerator": lambda check=None: torch.device("cuda")})
    cuda: Any = torch.cuda
    choosing = _choosing(placement)

    def asked(answer: Callable[[CachingAllocator], Any]) -> Callable[..., Any]:
        return _device_checked(placement, lambda number: answer(allocators[number]))

    answers = {
        "is_available": lambda: True,
        "device_count": lambda: len(placement.gpus),
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "current_device_index": choosing["current_device"],
        "current_device_idx": choosing["current_device"],
        "set_device_index": choosing["set_device"],
        "set_device_idx": choosing["set_device"],
        "device_index": lambda device: placement.chosen(-1 if device is None else _index(placement, device)),
        "current_stream": stream,
        "set_stream": lambda stream: None,
        "synchronize": _device_checked(placement, lambda number: None),
        "empty_cache": _emptying(allocators),
        "memory_stats": lambda device=None: cuda.memory_stats(device),
        "memory_allocated": asked(lambda one: one.allocated),
        "max_memory_allocated": asked(lambda one: one.peak_allocated),
        "memory_reserved": asked(lambda one: one.reserved),
        "max_memory_reserved": asked(lambda one: one.peak_reserved),
        "reset_peak_memory_stats": asked(lambda one: one.reset_peaks()),
        "reset_accumulated_memory_stats": asked(lambda one: one.reset_accumulated()),
        "get_memory_info": _device_checked(placement, lambda number: cuda.mem_get_info(number)),
        "get_device_capability": _device_checked(placement, lambda number: {"supported_dtypes": set(_DTYPES.values())}),
    }
    replacements.replace_present(accelerator, answers)
    replacements.replace_present(getattr(accelerator, "memory", None), answers)


def _tensor_type(name: str, placement: Placement) -> type:
    """What replaces `torch.cuda.FloatTensor` and its like."""
    dtype = _DTYPES[name]

    class Meta(type):
        def __call__(cls, *arguments: Any) -> torch.Tensor:
            data = arguments[0] if arguments else ()
            if isinstance(data, int | torch.Size):
                return torch.empty(*arguments, dtype=dtype, device=placement.gpu)
            if isinstance(data, torch.Tensor):
                return data.to(placement.gpu, dtype)
            return torch.tensor(data, dtype=dtype, device=placement.gpu)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, torch.Tensor) and instance.dtype == dtype and placement.on_gpu(instance)

    return Meta(f"{name}Tensor", (), {"__module__": "torch.cuda", "dtype": dtype})


def _replace_compiler(replacements: Replacements) -> None:
    """Compiled code goes past every mode, so compiled functions run as they are written.

    Where someone else has replaced `torch.compile` already (to tell of it), theirs stays.
    """

    def compile_nothing(model: Any = None, **keywords: Any) -> Any:
        return (lambda function: function) if model is None else model

    for owner, replacement in ((torch, compile_nothing), (torch.nn.Module, lambda self, *_, **__: None)):
        if getattr(owner.compile, "__module__", "").partition(".")[0] == "torch":
            replacements.replace(owner, "compile", replacement)
