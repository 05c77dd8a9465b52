"""Thousands of fixes in one function, or on one line: each takes as long as if it were alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from torchmemlint.config.limits import Limits
from torchmemlint.engine.garbage import quiet_collector
from torchmemlint.engine.one_file import Fixing, Profile, check_bytes
from torchmemlint.rules.registry import all_rules

CODES = frozenset(rule.code for rule in all_rules())
LOOP = """\
import torch


def train(model, loader):
    {begin}
    for x in loader:
        loss = model(x)
        loss.backward()
        {body}
    return loss.item()
"""


def sums(count: int, between: str) -> str:
    begin = "\n    ".join(f"total_{number} = 0.0" for number in range(count))
    return LOOP.format(begin=begin, body=between.join(f"total_{number} += loss" for number in range(count)))


def caches(count: int) -> str:
    return LOOP.format(begin="pass", body="\n        ".join(["torch.cuda.empty_cache()"] * count))


def tensors(count: int) -> str:
    listed = ", ".join(['torch.zeros(1024, 1024).to("cuda")'] * count)
    return f"import torch\n\n\ndef build():\n    return [{listed}]\n"


PROGRAMS: dict[str, Callable[[int], str]] = {
    "sums": lambda count: sums(count, "\n        "),
    "sums on a line": lambda count: sums(count, "; "),
    "caches": caches,
    "tensors in a list": tensors,
}


def seconds(text: str, fixing: Fixing, count: int) -> float:
    profile = Profile(CODES, fixing=fixing, unsafe=True, limits=Limits(0, 0, 300, 0))
    with quiet_collector():  # as the command does
        begin = time.process_time()
        result = check_bytes(text.encode(), Path("a.py"), profile)
        spent = time.process_time() - begin
    assert (len(result.fixed.applied) if result.fixed is not None else len(result.findings)) == count
    return spent


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=list(PROGRAMS))
def test_each_fix_takes_the_same(program: Callable[[int], str]) -> None:
    few, more = (min(seconds(program(count), Fixing.PREVIEW, count) for _ in range(2)) for count in (60, 240))
    assert more < 10 * few


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=list(PROGRAMS))
def test_each_of_thousands_of_fixes_takes_the_same(program: Callable[[int], str]) -> None:
    few, more, most = (seconds(program(count), Fixing.PREVIEW, count) for count in (190, 750, 3_000))
    assert more < 8 * few
    assert most < 8 * more


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=list(PROGRAMS))
def test_three_thousand_fixes_in_a_function(program: Callable[[int], str]) -> None:
    """They are found a second time, in the fixed text; writing and comparing takes no longer than finding."""
    text = program(3_000)
    assert seconds(text, Fixing.PREVIEW, 3_000) < 2.5 * seconds(text, Fixing.NONE, 3_000)
