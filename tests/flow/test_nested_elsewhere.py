"""Functions within functions of other files are followed, and not analysed as if they stood in this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text
from torchmemlint.flow.project import Project
from torchmemlint.rules.registry import all_rules

_ELSEWHERE = '''
"""Many lines, so that a place in this file is none in the other."""

from torch.utils.data import DataLoader


def loaders(items, size):
    def loader(part):
        return DataLoader(
            dataset=part,
            batch_size=size,
        )

    return loader(items[:100]), loader(items[100:])
'''
_MOVING = '''
"""Many lines."""


class Mover:
    def __init__(self, device="cuda"):
        self.device = device

    def move(self, batch):
        return {
            name: value.to("cuda")
            for name, value in batch.items()
        }


def move(batch):
    return batch.to(
        "cuda",
    )
'''
_PINNED = """\
import torch
from torch.utils.data import DataLoader
from moving import move
def train(model, data):
    for batch in DataLoader(data, 8, num_workers=2, pin_memory=True):
        model(move(batch)).mean().backward()
"""
_MAIN = """\
import torch
from data import loaders
def train(model, items, optimizer):
    for batch in loaders(items, 4)[0]:
        model(batch).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("name", "other", "text"), [("data", _ELSEWHERE, _MAIN), ("moving", _MOVING, _PINNED)])
def test_findings_stand_in_the_file_that_is_checked(tmp_path: Path, name: str, other: str, text: str) -> None:
    (tmp_path / f"{name}.py").write_text(other)
    main = tmp_path / "train.py"
    main.write_text(text)
    codes = frozenset(rule.code for rule in all_rules())
    for finding in check_text(text, main, codes, Project(tmp_path)):
        assert finding.span.end.row <= text.count("\n"), finding
