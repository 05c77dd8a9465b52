"""Caches of samples whose decorator, data set and loader stand in different files (TML110)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text
from torchmemlint.findings import Finding, Severity
from torchmemlint.flow.project import Project

MEMOISER = """
def memoize(function):
    known = {}

    def wrapper(*args):
        if args not in known:
            known[args] = function(*args)
        return known[args]

    return wrapper
"""

DECORATED = """
import torch
from torch.utils.data import Dataset

from data.memoiser import memoize


class Clips(Dataset):
    def __init__(self, paths):
        self.paths = paths

    @memoize
    def __getitem__(self, index):
        return torch.load(self.paths[index], map_location="cpu")
"""

FILLED = """
import torch
from torch.utils.data import Dataset


class Clips(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.kept = {}

    def __getitem__(self, index):
        if index not in self.kept:
            self.kept[index] = torch.load(self.paths[index], map_location="cpu")
        return self.kept[index]
"""

TRAIN = """
from torch.utils.data import DataLoader

from data.clips import Clips


def batches(paths):
    return DataLoader(Clips(paths), shuffle=True, num_workers=4)
"""


def check(root: Path, name: str, files: dict[str, str]) -> list[Finding]:
    for path, text in files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    (root / "pyproject.toml").touch()
    (root / "data" / "__init__.py").touch()
    return check_text(files[name], root / name, frozenset({"TML110"}), Project(root))


def test_a_decorator_of_another_file(tmp_path: Path) -> None:
    files = {"data/memoiser.py": MEMOISER, "data/clips.py": DECORATED}
    (finding,) = check(tmp_path, "data/clips.py", files)

    assert finding.message == "`memoize` keeps every sample of `Clips`"
    assert finding.severity is Severity.ADVICE  # it may be a small data set, read by one process


def test_a_decorator_out_of_view_may_do_anything(tmp_path: Path) -> None:
    assert check(tmp_path, "data/clips.py", {"data/clips.py": DECORATED}) == []


@pytest.mark.parametrize(("clips", "row"), [(DECORATED, 12), (FILLED, 13)])
def test_a_loader_of_another_file_shows_that_it_is_lost(tmp_path: Path, clips: str, row: int) -> None:
    files = {"data/memoiser.py": MEMOISER, "data/clips.py": clips, "train.py": TRAIN}
    (finding,) = check(tmp_path, "data/clips.py", files)

    assert finding.span.start.row == row
    assert finding.severity is Severity.WARNING
    assert finding.message.endswith(" in each of 4 workers for one epoch: the cache is never hit")
    assert any(one.filename == tmp_path / "train.py" for one in finding.evidence)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("known[args] = function(*args)", "known[args] = function(*args)\n            known.popitem()"),
        ("known[args] = function(*args)", "return function(*args)"),
        ("known = {}", "known = WeakValueDictionary()"),
        ("    known = {}\n\n    def wrapper(*args):\n", "    def wrapper(*args):\n        known = {}\n"),
        ("if args not in known", "if len(known) < 100"),
    ],
)
def test_what_forgets_is_no_such_decorator(tmp_path: Path, old: str, new: str) -> None:
    assert old in MEMOISER
    files = {"data/memoiser.py": MEMOISER.replace(old, new), "data/clips.py": DECORATED}

    assert check(tmp_path, "data/clips.py", files) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("num_workers=4", "num_workers=0"),
        ("num_workers=4", "num_workers=4, persistent_workers=True"),
        ("num_workers=4", "num_workers=4, persistent_workers=paths is not None"),
        ("shuffle=True", "sampler=Weighted(paths)"),
        ("shuffle=True", "batch_sampler=Buckets(paths)"),
    ],
)
@pytest.mark.parametrize("clips", [DECORATED, FILLED])
def test_a_cache_that_is_of_use_is_left_alone(tmp_path: Path, clips: str, old: str, new: str) -> None:
    assert old in TRAIN
    files = {"data/memoiser.py": MEMOISER, "data/clips.py": clips, "train.py": TRAIN.replace(old, new)}

    assert [one for one in check(tmp_path, "data/clips.py", files) if one.severity is not Severity.ADVICE] == []
