"""What plugins are told of the number of workers that a parameter gives a loader."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint import check_paths
from torchmemlint.engine.checking import Check
from torchmemlint.flow.project import Project

from .conftest import rule

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


def count(tmp_path: Path, text: str, **others: str) -> object:
    """The workers of the one loader in a file that stands beside others; `...` where they are not known."""
    path = tmp_path / "loading.py"
    path.write_text(text, encoding="utf-8")
    for name, other in others.items():
        (tmp_path / f"{name}.py").write_text(other, encoding="utf-8")
    (loader,) = Check(text, path, Project(tmp_path)).facts.loaders()
    return loader.get("num_workers")


def test_without_a_call_no_workers_say_nothing(tmp_path: Path) -> None:
    assert count(tmp_path, HELPER) is ...


@pytest.mark.parametrize(
    "call",
    ["make(data)", "make(data, 16)", "make(data, batch_size=16)", "make(data, 16, 0)", "make(data, num_workers=0)"],
)
def test_calls_of_other_files_that_leave_it_alone(tmp_path: Path, call: str) -> None:
    assert count(tmp_path, HELPER, train=f"from loading import make\nloader = {call}\n") == 0


@pytest.mark.parametrize(
    "call",
    ["make(data, num_workers=2)", "make(data, 16, n)", "make(*given)", "make(data, **given)"],
)
def test_a_call_that_says_otherwise(tmp_path: Path, call: str) -> None:
    others = {"train": "from loading import make\nloader = make(data)\n"}
    val = f"from loading import make\ndef val(data, n, given):\n    return {call}\n"
    assert count(tmp_path, HELPER, **others, val=val) is ...


def test_another_file_asks_for_workers_that_this_one_does_without(tmp_path: Path) -> None:
    text = HELPER + "\nloader = make([1])\n"
    assert count(tmp_path, text) == 0
    assert count(tmp_path, text, train="from loading import make\nloader = make(data, num_workers=8)\n") is ...


def test_workers_are_there_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    assert count(tmp_path, HELPER.replace("num_workers=0", "num_workers=6")) == 6


def test_the_constructor_of_a_data_module(tmp_path: Path) -> None:
    assert count(tmp_path, MODULE) == 4
    assert count(tmp_path, MODULE, train="from loading import Data\ndata = Data('root')\n") == 4


def test_hyperparameters(tmp_path: Path) -> None:
    text = MODULE.replace("self.num_workers = num_workers", "self.save_hyperparameters()")
    assert count(tmp_path, text.replace("=self.num_workers", "=self.hparams.num_workers")) == 4


@pytest.mark.parametrize(
    "assignment",
    [
        "num_workers = min(num_workers, 8); self.num_workers = num_workers",
        "self.num_workers = num_workers; self.num_workers = 2 * num_workers",
    ],
)
def test_what_is_made_of_the_parameter_is_not_it(tmp_path: Path, assignment: str) -> None:
    assert count(tmp_path, MODULE.replace("self.num_workers = num_workers", assignment)) is ...


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


def test_arguments(tmp_path: Path) -> None:
    path = tmp_path / "loading.py"
    text = "from torch.utils.data import DataLoader\ndef make(data, size):\n    return DataLoader(data, size, True)\n"
    (loader,) = Check(text, path).facts.loaders()
    assert (loader.qualified, loader.span.start.row) == ("torch.utils.data.DataLoader", 3)
    assert [loader.get(name) for name in ("shuffle", "batch_size", "pin_memory")] == [True, ..., None]


def test_a_rule_asks_for_loaders(tmp_path: Path) -> None:
    text = rule()
    body = "        for one in facts.loaders():\n"
    body += "            yield report(self, facts, one.span, f\"{one.get('num_workers')} workers\")\n"
    (tmp_path / "acme.py").write_text(text[: text.index("        for call in")] + body)
    path = tmp_path / "loading.py"
    path.write_text(HELPER + "\nloader = make([1])\n")
    found = check_paths(path, plugins=[tmp_path / "acme.py"], select=["ACM"])
    assert [(one.span.start.row, one.message) for one in found] == [(5, "0 workers")]
