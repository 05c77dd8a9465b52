"""What the environment of a program asks of the caching allocator."""

from __future__ import annotations

import os


def max_split_of_environment() -> int | None:
    """The `max_split_size_mb` that the program's environment asks of the allocator, in bytes."""
    value = _setting("max_split_size_mb")
    return int(value) << 20 if value.isdigit() else None


def expands_by_environment() -> bool:
    """Whether the program's environment asks for `expandable_segments`."""
    return _setting("expandable_segments") == "True"


def _setting(wanted: str) -> str:
    settings = os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or os.environ.get("PYTORCH_ALLOC_CONF") or ""
    for setting in settings.split(","):
        name, _, value = setting.partition(":")
        if name.strip() == wanted:
            return value.strip()
    return ""
