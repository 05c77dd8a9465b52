"""How code tells that memory ran out: torch's exceptions, their messages, and libraries' tests for them."""

from __future__ import annotations

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

_MESSAGES = ("out of memory", "outofmemory", "out_of_memory")


def speaks_of_memory(text: str) -> bool:
    """Is it (part of) the message or name of an out-of-memory error, as code looks for it?"""
    lower = text.lower()
    return any(message in lower for message in _MESSAGES)
