"""The number of workers that a parameter gives a loader where nobody in the project says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.flow.analysis import analyse
from torchmemlint.flow.project import Project
from torchmemlint.rules.loading.loaders import workers
from torchmemlint.syntax.source_module import SourceModule

HELPER = """
from torch.utils.data import DataLoader

def make(dataset, batch_size=8, num_workers=0):
    return DataLoader(dataset, batch_size, num_workers=num_workers)
"""
MODULE = """
import lightning as L
from torch.utils.data import DataLoader

class Data(L.LightningDataModule):
    def __init__(self, root, num_workers=4):
        super().__init__()
        self.num_workers = num_workers

    def train_dataloader(self):
        return DataLoader(self.data, num_workers=self.num_workers)
"""


def count(tmp_path: Path, text: str, **others: str) -> int | None:
    """The workers of the one loader in a file that stands beside others."""
    path = tmp_path / "loading.py"
    path.write_text(text, encoding="utf-8")
    for name, other in others.items():
        (tmp_path / f"{name}.py").write_text(other, encoding="utf-8")
    facts = analyse(SourceModule(text, path), Project(tmp_path))
    (loader,) = facts.loaders
    return workers(loader)


def test_without_a_call_no_workers_say_nothing(tmp_path: Path) -> None:
    assert count(tmp_path, HELPER) is None


@pytest.mark.parametrize(
    "call",
    ["make(data)", "make(data, 16)", "make(data, batch_size=16)", "make(data, 16, 0)", "make(data, num_workers=0)"],
)
def test_calls_of_other_files_that_leave_it_alone(tmp_path: Path, call: str) -> None:
    assert count(tmp_path, HELPER, train=f"from loading import make\nloader = {call}\n") == 0


@pytest.mark.parametrize(
    "call",
    ["make(data, num_workers=2)", "make(data, 16, n)", "make(*given)", "make(data, **settings)"],
)
def test_a_call_that_says_otherwise(tmp_path: Path, call: str) -> None:
    others = {"train": "from loading import make\nloader = make(data)\n"}
    assert count(tmp_path, HELPER, **others, val=f"from loading import make\nloader = {call}\n") is None


def test_another_file_asks_for_workers_that_this_one_does_without(tmp_path: Path) -> None:
    text = HELPER + "\nloader = make([1])\n"
    assert count(tmp_path, text) == 0
    assert count(tmp_path, text, train="from loading import make\nloader = make(data, num_workers=8)\n") is None


def test_workers_are_there_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    assert count(tmp_path, HELPER.replace("num_workers=0", "num_workers=6")) == 6


def test_the_constructor_of_a_data_module(tmp_path: Path) -> None:
    assert count(tmp_path, MODULE) == 4
    assert count(tmp_path, MODULE, train="from loading import Data\ndata = Data('root')\n") == 4
    assert count(tmp_path, MODULE, train="from loading import Data\ndata = Data('root', num_workers=n)\n") is None
    assert count(tmp_path, MODULE, train="from loading import Data\ndata = Data('root', 2)\n") is None


def test_hyperparameters(tmp_path: Path) -> None:
    text = MODULE.replace("self.num_workers = num_workers", "self.save_hyperparameters()")
    assert count(tmp_path, text.replace("=self.num_workers", "=self.hparams.num_workers")) == 4


@pytest.mark.parametrize(
    "assignment",
    [
        "self.num_workers = num_workers or 8",
        "num_workers = min(num_workers, 8); self.num_workers = num_workers",
        "self.num_workers = num_workers; self.num_workers = 2 * num_workers",
    ],
)
def test_what_is_made_of_the_parameter_is_not_it(tmp_path: Path, assignment: str) -> None:
    assert count(tmp_path, MODULE.replace("self.num_workers = num_workers", assignment)) is None


def test_a_field_of_a_dataclass(tmp_path: Path) -> None:
    text = """
from dataclasses import dataclass
from torch.utils.data import DataLoader

@dataclass
class Data:
    root: str
    num_workers: int = 3

    def train_dataloader(self):
        return DataLoader(self.data, num_workers=self.num_workers)
"""
    assert count(tmp_path, text) == 3
    assert count(tmp_path, text, train="from loading import Data\ndata = Data('root')\n") == 3
    assert count(tmp_path, text, train="from loading import Data\ndata = Data('root', 0)\n") is None
