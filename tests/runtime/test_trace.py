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


KEEPING = """\
import copy
import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64)).to("{device}")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for step in range({steps}):
    x = torch.randn(8, 64, device="{device}")
    out = model(x)
    loss = (out - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {keep}
"""
WHOLE = 4 * (64 * 512 + 512 + 512 * 64 + 64)


def traced(tmp_path: Path, backend: str, capsys: pytest.CaptureFixture[str], **holes: object) -> tuple[int, str]:
    program = tmp_path / "keep.py"
    program.write_text(KEEPING.format(**holes))
    code = main(["trace", "--isolated", "--backend", backend, "-q", str(program)])
    return code, capsys.readouterr().out


def test_what_is_kept_each_eighth_step_is_no_all_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep = "if step % 8 == 7: kept.append(copy.deepcopy(model.state_dict()))"
    code, shown = traced(tmp_path, "cpu", capsys, device="cpu", steps=30, keep=keep)
    assert code == 0
    assert "\nKept now and then, in too few turns to tell whether it goes on\n" in shown
    assert f"{WHOLE / 1024:.1f} KiB" in shown
    assert "keep.py:15, 3 times in 30 steps; none is freed" in shown
    assert "\n1 line keeps more now and then: give it more --steps to tell whether it grows." in shown
    assert "No growth" not in shown


@pytest.mark.slow
def test_what_is_replaced_each_eighth_step_is_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep = "if step % 8 == 7: kept = [copy.deepcopy(model.state_dict())]"
    code, shown = traced(tmp_path, "cpu", capsys, device="cpu", steps=30, keep=keep)
    assert (code, "Kept now and then" in shown) == (0, False)
    assert "\nNo growth from step to step in 30 steps." in shown


@pytest.mark.slow
def test_growth_on_the_host_beside_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = traced(tmp_path, "simulated", capsys, device="cuda", steps=20, keep="kept.append(out.detach().cpu())")
    assert code == 1
    assert "keep.py:15  +2.0 KiB of CPU memory per step of optimizer 1" in shown
    code, shown = traced(tmp_path, "simulated", capsys, device="cuda", steps=20, keep="kept.append(loss.cpu().item())")
    assert code == 0
    assert "\nNo growth from step to step in 20 steps." in shown


def test_too_few_turns_are_no_all_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = traced(tmp_path, "cpu", capsys, device="cpu", steps=4, keep="kept.append(out)")
    assert code == 0
    assert "\nToo few turns to tell what grows: 4." in shown


EPOCHS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Linear(16, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def epoch():
    outs = []
    for x in DataLoader(torch.randn(80, 16), batch_size=8):
        out = model(x)
        optimizer.zero_grad()
        out.pow(2).mean().backward()
        optimizer.step()
        outs.append(out)
    return torch.cat(outs).mean().item()


for _ in range(2):
    epoch()
"""


@pytest.mark.slow
def test_what_an_epoch_collects_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "epochs.py"
    program.write_text(EPOCHS)
    assert main(["trace", "--isolated", "--backend", "cpu", "-q", str(program)]) == 0
    shown = capsys.readouterr().out
    assert "collected, and used later" in shown
    assert "epochs.py:16" in shown
    assert "grows    16,384 B, 1 storages" in shown  # 8 x 512 floats
    assert "epochs.py:16 collects 16.0 KiB per " in shown.splitlines()[-1]


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


def test_an_option_behind_the_program_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text("import argparse\nargparse.ArgumentParser().parse_args()\n")
    assert main(["trace", "--isolated", "--backend", "cpu", str(script), "--html=page.html", "--epochs", "2"]) == 2
    told = capsys.readouterr().err
    assert "notice: the program was given `--html`: options of `torchmemlint trace` go before" in told
