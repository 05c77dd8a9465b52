"""What callers in other files give for a parameter, and whether they differentiate what they get back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text
from torchmemlint.findings import Finding, Severity
from torchmemlint.flow.project import Project

COLLECTOR = """
class Collector:
    def __init__(self):
        self.values = {}
        self.last = {}

    def declare(self, key):
        self.values[key] = list()

    def __setitem__(self, key, value):
        self.values[key].append(value)

    def keep(self, key, value):
        self.last[key] = value
"""

WORKER = """
from torch.utils.data import DataLoader


class Worker:
    def load(self, data):
        return DataLoader(data)

    def predict(self, model, problem, batch, collector, epoch=None):
        logits = model(batch)
        loss = problem.evaluate(batch, logits)
        if epoch is not None:
            collector["epoch"] = epoch
        collector["loss"] = loss
        return logits, loss
"""

BASE = """
from collector import Collector
from worker import Worker


class Base(Worker):
    def prepare(self):
        self.collector = None
        self.collector = Collector()
        self.collector.declare("loss")
"""

TRAINER = """
import torch

from base import Base


class Trainer(Base):
    def validate(self, batch):
        with torch.no_grad():
            self.predict(self.model, self.problem, batch, self.collector)

    def run(self):
        for index, batch in enumerate(self.batches):
            self.optimizer.zero_grad()
            logits, loss = self.predict(self.model, self.problem, batch, self.collector, index)
            loss.backward()
            self.optimizer.step()
"""

FILES = {"collector.py": COLLECTOR, "worker.py": WORKER, "base.py": BASE, "trainer.py": TRAINER}

METER = """
class Meter:
    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, count=1):
        self.sum += value * count
        self.count += count
"""

EPOCH = """
import torch
from torch import nn


def run_epoch(net: nn.Module, loader, optimizer, meter):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss, len(x))
"""

MAIN = """
from epoch import run_epoch
from meter import Meter


def main(net, loader, optimizer):
    meter = Meter()
    for _ in range(10):
        run_epoch(net, loader, optimizer, meter)
    print(meter.sum)
"""

STEP = """
from torch import nn


class Objective:
    def __init__(self, net: nn.Module):
        self.net = net
        self.total = 0.0
        self.history = []

    def compute(self, batch, problem):
        loss = problem.evaluate(self.net(batch))
        self.total += loss
        self.history.append(loss)
        return loss
"""

RUN = """
from step import Objective


def run(objective: Objective, loader, problem, optimizer, accelerator, scaler):
    for batch in loader:
        optimizer.zero_grad()
        loss = objective.compute(batch, problem)
        BACKWARD
        optimizer.step()
"""


def check(root: Path, name: str, files: dict[str, str]) -> list[Finding]:
    for path, text in files.items():
        (root / path).write_text(text, encoding="utf-8")
    return check_text(files[name], root / name, frozenset({"TML101", "TML102", "TML103"}), Project(root))


def test_an_object_that_all_callers_give_keeps_what_is_put_in(tmp_path: Path) -> None:
    (finding,) = check(tmp_path, "worker.py", FILES)

    assert (finding.code, finding.severity, finding.span.start.row) == ("TML102", Severity.WARNING, 14)
    assert "`collector` collects `loss`" in finding.message
    assert any("`Trainer.run` runs a backward through what it gets" in link.message for link in finding.evidence)
    assert finding.fix is not None


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("collector.py", "self.values[key].append(value)", "self.values[key] = value"),
        ("collector.py", "self.values[key].append(value)", "self.values[key].append(value.item())"),
        ("collector.py", "self.values[key] = list()", "self.values[key] = deque(maxlen=10)"),
        ("worker.py", 'collector["loss"] = loss', 'collector["loss"] = loss.item()'),
        ("worker.py", 'collector["loss"] = loss', 'collector["loss"] = loss.detach()'),
        ("worker.py", 'collector["loss"] = loss', 'collector.keep("loss", loss)'),
        ("trainer.py", "loss.backward()", "print(loss.item())"),
        ("trainer.py", "loss.backward()", "loss.backward(retain_graph=True)"),
        ("trainer.py", "loss.backward()", "loss = self.other(batch); loss.backward()"),
        ("trainer.py", "batch, self.collector, index", "batch, {}, index"),
        ("trainer.py", "batch, self.collector, index", "batch, *self.rest"),
        ("trainer.py", "            self.optimizer.zero_grad()", "            self.collector = Collector()"),
        ("trainer.py", "for index, batch in enumerate(self.batches):", "with torch.no_grad():"),
        ("base.py", "self.collector = Collector()", "self.collector = make()"),
    ],
)
def test_what_callers_give_is_told_or_nothing_is_said(tmp_path: Path, name: str, old: str, new: str) -> None:
    assert old in FILES[name]

    assert check(tmp_path, "worker.py", {**FILES, name: FILES[name].replace(old, new)}) == []


def test_callers_that_differ_tell_nothing(tmp_path: Path) -> None:
    other = "from base import Base\n\n\nclass Other(Base):\n    def run(self, batch, sink):\n"
    other += "        return self.predict(self.model, self.problem, batch, Sink())\n"

    assert check(tmp_path, "worker.py", {**FILES, "other.py": other}) == []


def test_a_meter_that_a_caller_makes_is_followed(tmp_path: Path) -> None:
    (finding,) = check(tmp_path, "epoch.py", {"meter.py": METER, "epoch.py": EPOCH, "main.py": MAIN})

    assert (finding.code, finding.severity, finding.span.start.row) == ("TML101", Severity.WARNING, 12)


def test_a_meter_that_a_caller_hands_on_is_followed(tmp_path: Path) -> None:
    between = "from epoch import run_epoch\n\n\ndef phase(net, loader, optimizer, meter):\n"
    between += "    for _ in range(3):\n        run_epoch(net, loader, optimizer, meter)\n"
    main = MAIN.replace("from epoch import run_epoch", "from between import phase").replace("run_epoch(", "phase(")
    files = {"meter.py": METER, "epoch.py": EPOCH, "between.py": between, "main.py": main}

    (finding,) = check(tmp_path, "epoch.py", files)

    assert finding.code == "TML101"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("meter.py", "self.sum += value * count", "self.sum += float(value) * count"),
        ("epoch.py", "meter.update(loss, len(x))", "meter.update(loss.item(), len(x))"),
        ("epoch.py", "loss.backward()", "print(loss)"),
        ("main.py", "    meter = Meter()\n", "    meter = None\n"),
    ],
)
def test_a_meter_of_numbers_costs_nothing(tmp_path: Path, name: str, old: str, new: str) -> None:
    files = {"meter.py": METER, "epoch.py": EPOCH, "main.py": MAIN}
    assert old in files[name]

    assert check(tmp_path, "epoch.py", {**files, name: files[name].replace(old, new)}) == []


@pytest.mark.parametrize("backward", ["loss.backward()", "scaler.scale(loss).backward()", "accelerator.backward(loss)"])
def test_what_a_caller_differentiates_is_kept_with_a_spent_graph(tmp_path: Path, backward: str) -> None:
    findings = check(tmp_path, "step.py", {"step.py": STEP, "run.py": RUN.replace("BACKWARD", backward)})

    assert [(f.code, f.severity, f.span.start.row) for f in findings] == [
        ("TML101", Severity.WARNING, 13),
        ("TML102", Severity.WARNING, 14),
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BACKWARD", "print(loss)"),
        ("BACKWARD", "loss.backward(retain_graph=True)"),
        ("        loss = objective.compute(batch, problem)", "        objective.compute(batch, problem)"),
    ],
)
def test_what_no_caller_differentiates_is_left_alone(tmp_path: Path, old: str, new: str) -> None:
    assert check(tmp_path, "step.py", {"step.py": STEP, "run.py": RUN.replace(old, new)}) == []
