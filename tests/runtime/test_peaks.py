"""What lives at a peak without use, what waits for the garbage collector, and gradients that no optimizer uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
from tests.runtime.tracing import traced

SKIPPED = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for step in range(12):
        score = model(torch.ones(256, 32)).mean()
        if step % 4 == 1:
            DROP
            continue
        optimizer.zero_grad()
        score.backward()
        optimizer.step()


train()
"""
REFRESHED = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(32, 256), nn.BatchNorm1d(256), nn.Tanh(), nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def refresh(batches):
    for batch in batches:
        model(batch)


def train():
    for step in range(8):
        optimizer.zero_grad()
        model(torch.ones(512, 32)).mean().backward()
        optimizer.step()


train()
WITH:
    refresh(torch.utils.data.DataLoader(torch.ones(512, 32), batch_size=128))
"""
CYCLES = """
import gc

import torch
from torch import nn


class Node:
    def __init__(self, value):
        self.value = value
        self.me = SELF


def work():
    for step in range(16):
        node = Node(torch.ones(1024))
        node.value.sum().item()
        if step % 6 == 5:
            gc.collect()


gc.collect()
gc.disable()
work()
gc.enable()
"""
FROZEN = """
import torch
from torch import nn

encoder, head = nn.Linear(32, 64), nn.Linear(64, 1)
FREEZE
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for step in range(8):
    loss = head(encoder(torch.ones(128, 32)).tanh()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def told(folder: Path, text: str) -> dict[str, Any]:
    """What the analysis of a program says; the lines of what it names as they are written."""
    script = folder / "train.py"
    script.write_text(text)
    return traced(script)[1].result()


def line(text: str, site: dict[str, Any]) -> str:
    """A line of a program."""
    return text.splitlines()[site["line"] - 1].strip()


def test_the_graph_of_a_skipped_batch_is_idle_at_the_peak(tmp_path: Path) -> None:
    found = told(tmp_path, SKIPPED.replace("DROP", "pass"))
    assert found["leaks"] == []
    (peak,) = found["idle"]
    assert peak["series"] is None
    part = peak["parts"][0]
    assert (part["holder"]["name"], part["holder"]["kind"]) == ("score", "local")
    assert part["nbytes"] >= 256 * 256 * 4  # what `tanh` saved
    assert line(SKIPPED, part["line"]) == "score = model(torch.ones(256, 32)).mean()"
    dropped = told(tmp_path, SKIPPED.replace("DROP", "del score"))
    assert [part["holder"] for peak in dropped["idle"] for part in peak["parts"] if part["holder"]] == []


def test_a_pass_whose_graphs_no_backward_uses_has_a_peak_of_its_own(tmp_path: Path) -> None:
    recorded = REFRESHED.replace("WITH", "if True")
    found = told(tmp_path, recorded)
    (loop,) = [one for one in found["idle"] if one["series"] is not None]
    assert loop["series"].endswith(":10")
    assert line(recorded, loop["parts"][0]["line"]) == "model(batch)"
    assert loop["parts"][0]["nbytes"] >= 128 * 256 * 4  # what the batch norm was given
    without = told(tmp_path, REFRESHED.replace("WITH", "with torch.no_grad()"))
    assert [one for one in without["idle"] if one["series"] is not None] == []


def test_cycles_wait_for_the_collector(tmp_path: Path) -> None:
    program = CYCLES.replace("SELF", "self")
    (waiting,) = told(tmp_path, program)["waiting"]
    assert line(program, waiting["site"]) == "node = Node(torch.ones(1024))"
    assert line(program, waiting["line"]) == "self.value = value"
    assert waiting["cycle"]["of_type"] == "Node"
    assert waiting["collections"] >= 2
    assert 5 * 4096 <= waiting["most"] <= 7 * 4096
    assert told(tmp_path, CYCLES.replace("SELF", "None"))["waiting"] == []


def test_gradients_that_no_optimizer_uses(tmp_path: Path) -> None:
    program = FROZEN.replace("FREEZE", "pass")
    unneeded = told(tmp_path, program)["unneeded"]
    assert (unneeded["parameters"], unneeded["gradients"]) == (2, (32 * 64 + 64) * 4)
    assert [line(program, site) for site in unneeded["saved"]] == [
        "loss = head(encoder(torch.ones(128, 32)).tanh()).mean()"
    ]
    # The input of the encoder; `tanh`'s result is the head's input, and kept for its weight all the same.
    assert unneeded["saved"][0]["nbytes"] == 128 * 32 * 4
    assert told(tmp_path, FROZEN.replace("FREEZE", "encoder.requires_grad_(False)"))["unneeded"] is None
