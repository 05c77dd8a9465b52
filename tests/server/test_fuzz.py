"""Thousands of random edits: the server lives, and again and again it says what a fresh check says.

`FUZZ_EDITS` in the environment is the number of edits, `FUZZ_SEED` the seed of the random generator.
"""

from __future__ import annotations

import os

import pytest

from tests.server.fuzz import Fuzzer

pytestmark = pytest.mark.asyncio

EDITS = int(os.environ.get("FUZZ_EDITS", "4000"))
ROUND = 1_000
WARM = 2  # rounds after which the server is as large as it should ever be


async def test_random_edits(capfd, editor) -> None:
    fuzzer = Fuzzer(editor, seed=int(os.environ.get("FUZZ_SEED", "1")))
    await editor.begin()
    await fuzzer.open_all()
    sizes: list[int] = []
    for _ in range(max(EDITS // ROUND, WARM + 1)):
        await fuzzer.edit(ROUND)
        await fuzzer.settle()
        assert await fuzzer.differences() == []
        await fuzzer.begin_again()
        sizes.append(fuzzer.resident())
    assert "internal error" not in (said := capfd.readouterr().err), said
    growth = sizes[-1] / sizes[WARM - 1] - 1
    print(f"{fuzzer.sent} edits, {fuzzer.unreadable} of the texts unreadable, memory {growth:+.1%}")
    assert growth < 0.1, sizes
