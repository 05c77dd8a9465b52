"""How code tells that memory ran out: torch's exceptions, their messages, and libraries' tests for them."""

from __future__ import annotations

# Source: torch/_C/__init__.pyi.in and torch/cuda/__init__.py; `torch.OutOfMemoryError` is a RuntimeError since 2.5.
OUT_OF_MEMORY = frozenset(
    {
        "torch.OutOfMemoryError",
        "torch.cuda.OutOfMemoryError",
        "torch._C.OutOfMemoryError",
        "torch._C._OutOfMemoryError",
    }
)

# Functions that say whether an exception means that memory ran out.
# Sources: accelerate/utils/memory.py; (lightning/)pytorch(_lightning)/utilities/memory.py.
PREDICATES = frozenset(
    {
        "accelerate.utils.should_reduce_batch_size",
        "accelerate.utils.memory.should_reduce_batch_size",
        "pytorch_lightning.utilities.memory.is_oom_error",
        "lightning.pytorch.utilities.memory.is_oom_error",
    }
)

CLEARING = frozenset({"traceback.clear_frames"})
_MESSAGES = ("out of memory", "outofmemory", "out_of_memory")


def speaks_of_memory(text: str) -> bool:
    """Is it (part of) the message or name of an out-of-memory error, as code looks for it?"""
    lower = text.lower()
    return any(message in lower for message in _MESSAGES)
