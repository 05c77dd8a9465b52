"""Thousands of random edits: the server lives, and again and again it says what a fresh check says.

`FUZZ_EDITS` in the environment is the number of edits, `FUZZ_SEED` the seed of the random generator.
"""

from __future__ import annotations

import os

import pytest

from tests.server.fuzz import Fuzzer

pytestmark = pytest.mark.asyncio

EDITS = int(os.environ.get("FUZZ_EDITS", "3000"))
ROUND = 1_000
WARM = 2  # rounds after which the server is as large as it should ever be


async def test_some_random_edits(capfd, editor) -> None:
    fuzzer = await begun(editor)
    await a_round(fuzzer, ROUND // 2)
    assert "internal error" not in (said := capfd.readouterr().err), said


@pytest.mark.slow
async def test_random_edits(capfd, editor) -> None:
    fuzzer = await begun(editor)
    sizes: list[int] = []
    for _ in range(max(EDITS // ROUND, WARM + 1)):
        await a_round(fuzzer, ROUND)
        sizes.append(fuzzer.resident())
    assert "internal error" not in (said := capfd.readouterr().err), said
    growth = sizes[-1] / sizes[WARM - 1] - 1
    print(f"{fuzzer.sent} edits, {fuzzer.unreadable} of the texts unreadable, memory {growth:+.1%}")
    assert growth < 0.1, sizes


async def begun(editor) -> Fuzzer:
    fuzzer = Fuzzer(editor, seed=int(os.environ.get("FUZZ_SEED", "1")))
    await editor.begin()
    await fuzzer.open_all()
    return fuzzer


async def a_round(fuzzer: Fuzzer, edits: int) -> None:
    await fuzzer.edit(edits)
    await fuzzer.settle()
    assert await fuzzer.differences() == []
    await fuzzer.begin_again()
