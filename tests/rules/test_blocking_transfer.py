"""TML403 speaks of a pinned batch only where the loader pins."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text

PROGRAM = """\
from torch.utils.data import DataLoader

loader = DataLoader(open("data"), num_workers=4{pinned})
for batch in loader:
    x = batch[0].cuda()
"""


@pytest.mark.parametrize(
    ("pinned", "message"),
    [
        (", pin_memory=True", "`batch[0].cuda()` blocks until the copy finishes: pass `non_blocking=True`"),
        (
            "",
            "`batch[0].cuda()` blocks until the copy finishes: pass `non_blocking=True` and pin (TML402)",
        ),
    ],
)
def test_the_message_says_what_the_loader_does(pinned: str, message: str) -> None:
    found = check_text(PROGRAM.format(pinned=pinned), Path("train.py"), frozenset({"TML403"}))
    assert [finding.message for finding in found] == [message]
