"""TML404: an argument that torch has had since 1.7, and how many workers the message names."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text

FIXTURE = Path(__file__).parents[2] / "fixtures" / "TML404-loader-respawns-workers" / "bad_plain.py"
LOADER = """
from torch.utils.data import DataLoader

def train(data, count):
    loader = DataLoader(data, num_workers={workers})
    for epoch in range(9):
        for x in loader:
            print(x)
"""


@pytest.mark.parametrize(("target", "found"), [("1.6", False), ("1.7", True), (None, True)])
def test_a_torch_without_the_argument_is_left_alone(target: str | None, found: bool) -> None:
    text = FIXTURE.read_text(encoding="utf-8")
    assert bool(check_text(text, FIXTURE, frozenset({"TML404"}), target=target)) is found


@pytest.mark.parametrize(("workers", "told"), [("1", []), ("3", ["its 3 workers for"])])
def test_one_worker_starts_fast(workers: str, told: list[str]) -> None:
    found = check_text(LOADER.format(workers=workers), Path("train.py"), frozenset({"TML404"}))
    assert len(found) == len(told)
    assert all(words in one.message for words, one in zip(told, found, strict=True))
