"""A meter that callers in another file give a function, and what it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text
from torchmemlint.findings import Finding, Severity
from torchmemlint.flow.project import Project

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


def check(root: Path, name: str, files: dict[str, str]) -> list[Finding]:
    for path, text in files.items():
        (root / path).write_text(text, encoding="utf-8")
    return check_text(files[name], root / name, frozenset({"TML101", "TML102", "TML103"}), Project(root))


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
