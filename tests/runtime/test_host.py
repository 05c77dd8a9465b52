"""The host's heap."""

from __future__ import annotations

import ctypes
import gc

import pytest

from torchmemlint.runtime.host import heap_bytes


def test_what_is_allocated_is_counted() -> None:
    gc.collect()
    gc.disable()  # what others left would go in between
    try:
        before = heap_bytes()
        if before is None:
            pytest.skip("this C library does not tell")
        held = [ctypes.create_string_buffer(50_000) for _ in range(20)]
        middle = heap_bytes()
        del held
        after = heap_bytes()
    finally:
        gc.enable()
    assert middle is not None
    assert after is not None
    assert 1_000_000 <= middle - before < 1_200_000
    assert abs(after - before) < 100_000
