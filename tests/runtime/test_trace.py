"""`torchmemlint trace` from the command line, in child processes as its users run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
from tests.runtime.schemas import TRACE, validate
from torchmemlint.cli.main import main

LEAKING = """
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def train(model, steps):
    losses = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss = model(torch.ones(8, 16, device=device)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses


class Probe:
    def __init__(self):
        self.seen = {}

    def look(self, step, values):
        self.seen[step] = values


probe = Probe()
model = nn.Linear(16, 1).to(device)
model.register_forward_hook(lambda module, args, output: probe.look(len(probe.seen), args[0].detach()))
train(model, 20)
"""

CLEAN = """
import torch

weight = torch.ones(4, 4, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(12):
    weight.sum().backward()
    optimizer.step()
"""


def test_what_grows_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(LEAKING)
    monkeypatch.chdir(tmp_path)
    written = ["trace", "--isolated", "--backend", "simulated", "--output-format", "json", "-o", "report.json"]
    assert main([*written, "train.py"]) == 1
    report = json.loads((tmp_path / "report.json").read_text())
    validate(report, TRACE)
    assert report["growing"]
    assert report["run"]["backend"] == "simulated"
    inputs, losses = report["leaks"]
    lines = LEAKING.splitlines()
    assert lines[inputs["line"]["line"] - 1].strip() == "self.seen[step] = values"
    assert (inputs["growth"]["bytes_per_turn"], inputs["holder"]["name"]) == (8 * 16 * 4, "probe.seen")
    assert [lines[made["line"] - 1].strip()[:12] for made in inputs["made"]] == ["loss = model"]
    assert inputs["findings"] == []
    # A number on the device takes four bytes, and a block of 512.
    assert lines[losses["line"]["line"] - 1].strip() == "losses.append(loss)"
    assert (losses["growth"]["bytes_per_turn"], losses["block_bytes"]) == (4, 512)
    assert losses["holder"]["kind"] == "local"
    assert [finding["code"] for finding in losses["findings"]] == ["TML102"]
    assert capsys.readouterr().out == ""


SCORING = """
import torch
from torch import nn

torch.cuda.set_per_process_memory_fraction({megabytes} / 40960)
model = nn.Sequential(nn.Linear(1024, 1024), nn.Tanh()).cuda()


def score():
    worst = 0
    for _ in range(8):
        worst = worst + model(torch.randn(1024, 1024, device="cuda")).square().mean()
    return float(worst)


score()
"""


def test_running_out_of_memory_is_what_it_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "score.py").write_text(SCORING.format(megabytes=100))
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "--isolated", "--fake", "-q", "score.py"]) == 1
    shown = capsys.readouterr().out
    assert "\nout of memory at score.py:12: CUDA out of memory. Tried to allocate 4.00 MiB." in shown
    assert "1  score.py:12 in score" in shown
    assert "rule     TML" in shown
    assert main(["trace", "--isolated", "--fake", "-q", "--output-format=json", "score.py"]) == 1
    report = json.loads(capsys.readouterr().out)
    validate(report, TRACE)
    assert report["run"]["out_of_memory"] == f"{tmp_path / 'score.py'}:12"
    # The error's way through the simulation is nobody's business.
    assert "torchmemlint" not in report["run"]["traceback"].partition("Error")[0]


def test_no_growth_is_exit_code_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(CLEAN)
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "--isolated", "--backend", "cpu", "train.py"]) == 0
    told = capsys.readouterr().out
    assert "measured on cpu" in told
    assert "No growth from step to step in 12 steps." in told


@pytest.mark.parametrize(
    "program",
    [
        "for i in range(20): print(i)\n",
        "for i in range(20):\n    for j in range(20):\n        pass\nfor k in range(30): pass\n",
    ],
)
def test_a_program_without_tensors(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "count.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "--isolated", "--backend", "cpu", "count.py"]) == 0
    shown = capsys.readouterr()
    assert "No growth in 20 turns of a loop." in shown.out or "No growth in 400 turns of a loop." in shown.out
    assert "at the peak" not in shown.out


def test_the_programs_output_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "says.py").write_text("import sys\nprint('epoch 1')\nprint('slow', file=sys.stderr)\n")
    monkeypatch.chdir(tmp_path)
    command = ["trace", "--isolated", "--backend", "cpu"]
    assert main([*command, "says.py"]) == 0
    shown = capfd.readouterr()
    assert sorted(shown.err.splitlines()) == ["epoch 1", "slow"]
    assert "epoch 1" not in shown.out
    assert main([*command, "-q", "says.py"]) == 0
    assert capfd.readouterr().err == ""


def test_what_does_not_run_is_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("import torch\nraise ValueError('no data')\n")
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "--isolated", "--backend", "cpu", "train.py"]) == 2
    assert "the program does not run: ValueError: no data" in capsys.readouterr().err
    assert main(["trace", "absent.py"]) == 2
    assert "absent.py: no such file" in capsys.readouterr().err
