"""Thousands of random edits: the server lives, and in the end it says what a fresh check says.

`FUZZ_EDITS` in the environment is the number of edits (10,000 by default).
"""

from __future__ import annotations

import os

import pytest

from tests.server.fuzz import Fuzzer

pytestmark = pytest.mark.asyncio

EDITS = int(os.environ.get("FUZZ_EDITS", "10000"))


async def test_random_edits(editor) -> None:
    fuzzer = Fuzzer(editor, seed=int(os.environ.get("FUZZ_SEED", "1")))
    await editor.begin()
    await fuzzer.open_all()
    await fuzzer.edit(EDITS // 10)
    before = fuzzer.resident()
    await fuzzer.edit(EDITS - EDITS // 10)
    await fuzzer.settle()
    assert await fuzzer.differences() == []
    growth = fuzzer.resident() / before - 1
    print(f"{EDITS} edits, {fuzzer.unreadable} of the texts unreadable, memory {growth:+.1%}")
    assert growth < 0.2
