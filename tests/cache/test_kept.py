"""What is taken from earlier runs, and what is looked at anew."""

from __future__ import annotations

import json
import pickle
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cache.conftest import Project
from torchmemlint.doubts import Doubt
from torchmemlint.engine import checking
from torchmemlint.engine.cache import results, snapshot, store
from torchmemlint.engine.one_file import Fixing, Profile, check_file
from torchmemlint.findings import Finding
from torchmemlint.flow.fact import judgement
from torchmemlint.flow.names.needs import Needs

METER = "class Meter:\n    def __init__(self):\n        self.values = []\n\n    def update(self, value):\n"
KEEPS = METER + "        self.values.append(value)\n"
COUNTS = METER + "        self.values.append(value.item())\n"
TRAIN = """
import torch
from tools.meters import Meter


def train(model, loader, optimizer):
    meter = Meter()
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss)
"""
TOTAL = """
import torch


def train(model, loader):
    total = 0
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        total += loss
    return total
"""
EVALUATE = """
import torch


def evaluate(model, loader):
    model.eval()
    outputs = []
    for x in loader:
        outputs.append(model(x))
    return outputs
"""
CALLER = """
import torch
from evaluation import evaluate


def main(model, loader):
    {context}:
        evaluate(model, loader)
"""


SAMPLER = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def sample(self, graph):
        return self.layer(graph).argmax(-1).tolist()
"""
GENERATE = """
import torch


def generate(net, graphs):
    {context}:
        return [net.sample(graph) for graph in graphs]
"""


def test_a_second_run_says_the_same_and_checks_nothing(project: Project) -> None:
    project.write("tools/meters.py", KEEPS)
    project.write("train.py", TRAIN)
    project.write("broken.py", "import torch\ndef broken(:\n")
    project.write("plain.py", "x = 1\n")
    first = project.check()
    assert project.checked == ["broken.py", "plain.py", "tools/meters.py", "train.py"]
    assert ("train.py", 13, "TML102") in project.found(first)
    second = project.check()
    assert project.checked == []
    assert second.findings == first.findings
    assert [f.fingerprint for f in second.findings] == [f.fingerprint for f in first.findings]
    assert [f.evidence for f in second.findings] == [f.evidence for f in first.findings]
    assert (second.files_checked, second.files_skipped, second.from_cache) == (
        first.files_checked,
        first.files_skipped,
        4,
    )


def test_a_changed_file_is_checked_again(project: Project) -> None:
    project.write("a.py", TOTAL)
    project.write("b.py", TOTAL)
    project.check()
    project.write("a.py", TOTAL.replace("total += loss", "total += loss.item()"))
    assert {name for name, *_ in project.found(project.check())} == {"b.py"}
    assert project.checked == ["a.py"]


def test_a_changed_helper_has_its_users_checked_and_nothing_else(project: Project) -> None:
    project.write("tools/__init__.py", "from tools.meters import Meter\nfrom tools.other import Other\n")
    project.write("tools/meters.py", KEEPS)
    project.write("tools/other.py", KEEPS.replace("Meter", "Other"))
    project.write("train.py", TRAIN)
    project.write("direct.py", TRAIN.replace("tools.meters", "tools"))
    project.write("other.py", TRAIN.replace("tools.meters", "tools").replace("Meter", "Other"))
    project.write("alone.py", TOTAL)
    assert {name for name, *_ in project.found(project.check())} == {"train.py", "direct.py", "other.py", "alone.py"}
    project.write("tools/meters.py", COUNTS)
    assert {name for name, *_ in project.found(project.check())} == {"other.py", "alone.py"}
    package = ["tools/__init__.py", "tools/meters.py", "tools/other.py"]  # which is run as a whole
    assert project.checked == ["direct.py", "other.py", *package, "train.py"]


def test_what_a_class_inherits_from_other_files_counts(project: Project) -> None:
    project.write("base.py", "class Base:\n    def __init__(self):\n        self.values = []\n")
    project.write(
        "tools/meters.py",
        "from base import Base\n\n\nclass Meter(Base):\n"
        "    def update(self, value):\n        self.values.append(value)\n",
    )
    project.write("train.py", TRAIN)
    project.write("second.py", TRAIN)
    assert {name for name, *_ in project.found(project.check())} == {"train.py", "second.py"}
    project.write("base.py", "class Base:\n    def __init__(self):\n        self.values = Sink()\n")
    assert project.found(project.check()) == project.found(project.check(use_cache=False))
    project.check()
    assert project.checked == []


def test_a_module_that_comes_before_another_is_seen(project: Project) -> None:
    project.write("train.py", TRAIN)
    assert project.found(project.check()) == []  # `tools.meters` may be anything
    project.write("tools/meters.py", KEEPS)
    assert project.found(project.check()) == [("train.py", 13, "TML102")]
    assert "train.py" in project.checked


def test_a_caller_elsewhere_changes_what_is_found(project: Project) -> None:
    project.write("evaluation.py", EVALUATE)
    project.write("alone.py", TOTAL)
    codes = {code for name, _, code in project.found(project.check()) if name == "evaluation.py"}
    assert "TML201" in codes
    project.write("main.py", CALLER.format(context="with torch.no_grad()"))
    assert "TML201" not in {code for _, _, code in project.found(project.check())}
    assert project.checked == ["evaluation.py", "main.py"]
    project.write("main.py", CALLER.format(context="if True"))
    assert "TML201" in {code for _, _, code in project.found(project.check())}
    project.write("unrelated.py", "import torch\n\nx = torch.ones(3)\n")
    project.check()
    assert project.checked == ["unrelated.py"]


def test_a_file_that_names_a_method_changes_what_is_found(project: Project) -> None:
    """It imports nothing of it: the object was given there."""
    project.write("sampling.py", SAMPLER)
    for context, codes in (("if graphs", {"TML201"}), ("with torch.no_grad()", set()), ("if graphs", {"TML201"})):
        project.write("generate.py", GENERATE.format(context=context))
        assert {code for name, _, code in project.found(project.check()) if name == "sampling.py"} == codes


def test_one_named_file_is_answered_too(project: Project) -> None:
    project.write("tools/meters.py", KEEPS)
    project.write("train.py", TRAIN)
    project.check("train.py")
    project.check("train.py")
    assert project.checked == []
    project.write("tools/meters.py", COUNTS)
    assert project.found(project.check("train.py")) == []
    assert project.checked == ["train.py"]


def test_places_in_cells_are_kept(project: Project) -> None:
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": text}
        for text in ("%pip install torch", TOTAL)
    ]
    project.write("a.ipynb", json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    first, second = project.check(), project.check()
    assert project.checked == []
    assert [finding.code for finding in second.findings] == ["TML101"]
    for finding, known in zip(second.findings, first.findings, strict=True):
        assert finding.cells is not None
        assert finding.cells == known.cells
        assert finding.cells.cell(finding.span.start.row) == 2


@pytest.mark.parametrize(
    "setting",
    [
        'ignore = ["TML101"]',
        'severity = {TML101 = "advice"}',
        'target-torch = "2.0"',
        'confidence = "certain"',
    ],
)
def test_other_settings_are_another_matter(project: Project, setting: str) -> None:
    project.write("a.py", TOTAL)
    project.check()
    project.write("torchmemlint.toml", setting + "\n")
    report = project.check()
    assert project.checked == ["a.py"]
    assert project.found(report) == project.found(project.check(use_cache=False))
    project.write("torchmemlint.toml", "fail-on = 'error'\n")  # does not change what is found
    project.check()
    assert project.checked == []


def test_doubts_are_kept_and_how_many_findings_are_not_shown(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    check_text = checking.check_text

    def doubting(*arguments: Any, **options: Any) -> list[Finding]:
        found = check_text(*arguments, **options)
        return [one for finding in found for one in (replace(finding, doubts=(Doubt.GIVEN,)), _less_certain(finding))]

    monkeypatch.setattr(checking, "check_text", doubting)
    project.write("a.py", TOTAL)
    first, second = project.check(), project.check()
    assert project.checked == []
    assert [finding.doubts for finding in second.findings] == [finding.doubts for finding in first.findings]
    assert {finding.doubts for finding in second.findings} == {(Doubt.GIVEN,)}
    assert first.unsure == second.unsure == len(first.findings)


def test_what_was_followed_in_part_is_kept(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "_LEAST_WORK", 0)
    monkeypatch.setattr(judgement, "_BYTES_OF_WORK", 1000)
    project.write("a.py", TOTAL)
    first, second = project.check(), project.check()
    assert project.checked == []
    assert [path.name for path in first.partly] == ["a.py"]
    assert second.partly == first.partly


def _less_certain(finding: Finding) -> Finding:
    return replace(finding, doubts=(Doubt.MODE,))


def test_what_a_folder_requires_of_torch_is_another_matter(project: Project) -> None:
    for name in ("a.py", "old/a.py", "old/models/a.py"):
        project.write(name, TOTAL)
    project.check()
    project.write("old/requirements.txt", "torch==1.7.1\n")
    project.check()
    assert sorted(project.checked) == ["old/a.py", "old/models/a.py"]


def test_another_version_is_another_matter(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("a.py", TOTAL)
    project.check()
    results._circumstances.cache_clear()
    monkeypatch.setattr(results, "_linter", lambda: ("another",))
    project.check()
    assert project.checked == ["a.py"]
    results._circumstances.cache_clear()


def test_fixing_looks_at_what_can_be_fixed(project: Project) -> None:
    project.write("a.py", TOTAL)
    project.write("good.py", TOTAL.replace("total += loss", "total += loss.item()"))
    project.check()
    report = project.check(fixing=Fixing.WRITE)
    assert project.checked == ["a.py"]
    assert len(report.fixed) == 1
    assert project.found(project.check()) == []
    assert project.checked == ["a.py"]


def test_a_file_that_has_just_changed_is_not_relied_on(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "SETTLED", 60.0)
    project.write("a.py", TOTAL)
    project.check()
    project.check()
    assert project.checked == ["a.py"]


@pytest.mark.parametrize(
    ("ago", "settled"), [(1_000_000_003, True), (1_000_000_000, False), (20_000_003, False), (3_000_000_000, True)]
)
def test_how_lately_depends_on_how_fine_the_stamps_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ago: int, settled: bool
) -> None:
    path = tmp_path / "a.py"
    path.write_text("import torch\n")
    changed = 1_800_000_000 * 10**9 - ago
    found = SimpleNamespace(st_mtime_ns=changed, st_ctime_ns=changed, st_size=path.stat().st_size)
    with monkeypatch.context() as patch:
        patch.setattr(snapshot.time, "time", lambda: 1_800_000_000.0)
        now = snapshot.Snapshot(tmp_path, {})
        patch.setattr(snapshot.os, "stat", lambda path: found)
        assert now.is_settled(str(path)) is settled


def test_a_file_too_large_to_be_a_program_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_text("x" * 100)
    monkeypatch.setattr(snapshot, "_MOST_READ", 99)
    monkeypatch.setattr(snapshot, "read_regular", lambda path: pytest.fail("it was read"))
    before = snapshot.Snapshot(tmp_path, {}).digest(str(path))
    path.write_text("x" * 101)
    assert before is not None
    assert snapshot.Snapshot(tmp_path, {}).digest(str(path)) != before


@pytest.fixture(params=["cut", "text", "empty", "folder", "foreign", "nonsense"])
def damaged(request: pytest.FixtureRequest, project: Project) -> Project:
    """A project whose store is not what it was."""
    project.write("a.py", TOTAL)
    project.check()
    (path,) = store.files_in(project.folder)
    match request.param:
        case "cut":
            path.write_bytes(path.read_bytes()[:5000])
        case "text":
            path.write_text("not a database, though long enough to be taken for one" * 100)
        case "empty":
            path.write_bytes(b"")
        case "folder":
            path.unlink()
            path.mkdir()
        case "foreign":
            path.unlink()
            with sqlite3.connect(path) as connection:
                connection.execute("CREATE TABLE results (x)")
        case "nonsense":
            with sqlite3.connect(path) as connection:
                connection.execute("UPDATE results SET needs = '[1]', result = '{\"findings\": [[1]]}'")
    return project


def test_a_damaged_store_costs_no_finding(damaged: Project) -> None:
    report = damaged.check()
    assert damaged.found(report) == damaged.found(damaged.check(use_cache=False))
    assert report.errors == ()
    damaged.check()
    is_folder = any(path.is_dir() for path in damaged.folder.iterdir())
    assert damaged.checked == (["a.py"] if is_folder else [])
    assert bool(report.notices) == is_folder


def test_a_folder_that_cannot_be_made_is_told(project: Project) -> None:
    project.folder.write_text("a file where the folder should be")
    project.write("a.py", TOTAL)
    report = project.check()
    assert [code for *_, code in project.found(report)] == ["TML101"]
    (notice,) = report.notices
    assert "results of earlier runs are not used" in notice


def test_runs_at_the_same_time_leave_a_whole_store(project: Project) -> None:
    folder = project.folder / "shared"
    rows = [store.Row(f"f{n}.py", "same", "0", {}, {"findings": [], "skipped": False}) for n in range(50)]

    def write(number: int) -> None:
        one = store.Store(folder / "one.sqlite3")
        one.keep(rows[number::2] * 3, {})
        one.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, [0, 1] * 10))
    one = store.Store(folder / "one.sqlite3")
    assert set(one.rows("same")) == {row.path for row in rows}
    assert one.count() == len(rows)
    one.close()


def test_a_store_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_BYTES", 100_000)
    one = store.Store(tmp_path / "kept" / "one.sqlite3")
    for number in range(30):
        one.keep([store.Row(f"f{number}.py", "same", "0", {}, {"findings": ["x" * 10_000]})], {})
    assert one.size() <= 150_000
    assert 0 < one.count() < 30
    one.close()
    for number in range(4):
        (tmp_path / "kept" / f"{number}.sqlite3").write_bytes(b"0" * 60_000)
    monkeypatch.setattr(store, "MAX_BYTES_OF_ALL", 150_000)
    store.bound_all(tmp_path / "kept")
    assert sum(path.stat().st_size for path in store.files_in(tmp_path / "kept")) <= 150_000


def test_version_control_leaves_the_folder_alone(project: Project) -> None:
    project.write("a.py", TOTAL)
    project.check()
    assert (project.folder / ".gitignore").read_text() == "*\n"
    assert (project.folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_what_results_rest_on_is_taken_down_only_where_they_are_kept(project: Project) -> None:
    project.write("tools/meters.py", KEEPS)
    project.write("train.py", TRAIN)
    profile = Profile(frozenset({"TML102"}), root=project.root)
    assert check_file(project.root / "train.py", profile).needs is None
    needs = check_file(project.root / "train.py", replace(profile, kept=True)).needs
    assert needs is not None
    assert str(project.root / "tools" / "meters.py") in needs.files


def test_what_thousands_of_results_rest_on_is_in_memory_once(project: Project) -> None:
    needs = Needs.of(["/p/" + "a.py"], ["/p/" + "b.py"], ["class A"])
    again = pickle.loads(pickle.dumps(needs))  # as it comes from a worker
    assert again == needs
    assert again.files[0] is needs.files[0]
    assert again.sought[0] is needs.sought[0]
