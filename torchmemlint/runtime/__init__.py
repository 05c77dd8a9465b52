"""The runtime verifier: what a program does to memory, measured while it runs.

Nothing outside this package imports it unless the user asks for a measurement, because it imports torch
(the extra `verify`). Start reading at `memory.py`, which is what `track_memory` is; `tracker.py` watches the
storages, `ledger.py` remembers them, `backends.py` says on what they are measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchmemlint.runtime.memory import MemoryUse, track_memory

__all__ = ["MemoryUse", "track_memory"]


def __getattr__(name: str) -> object:
    """Load the measuring half on first use: its data types can be read where torch is not installed."""
    if name in __all__:
        from torchmemlint.runtime import memory

        return getattr(memory, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
