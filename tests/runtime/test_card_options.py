"""`--card` and `--memory` of the commands that run a program, or a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
from tests.runtime.schemas import TRACE, validate
from torchmemlint.cli.main import main
from torchmemlint.runtime.commands import Options
from torchmemlint.runtime.simulated import cards

GIB = 1 << 30
PROGRAM = """
import torch

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print("has", torch.cuda.get_device_name(), torch.cuda.mem_get_info()[1])
for _ in range(12):
    model(torch.ones(4, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
MODEL = "import torch\n\ndef model():\n    return torch.nn.Linear(64, 8)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "carded_models.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_trace_runs_on_the_card(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "--isolated", "--card", "RTX 4090", "--output-format", "json", "train.py"]) == 0
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    validate(report, TRACE)
    total = cards.card("rtx4090").total
    assert f"has NVIDIA GeForce RTX 4090 {total}" in captured.err
    assert (report["run"]["card"], report["run"]["capacity"]) == ("RTX 4090", total)


@pytest.mark.slow
def test_reports_say_the_bytes_that_were_given(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "--isolated", "--memory", "22GiB", "train.py"]) == 0
    captured = capsys.readouterr()
    assert "simulated (allocator model of an A100 40GB with 22.0 GiB; no GPU was used)" in captured.out
    assert f"has NVIDIA A100-SXM4-40GB {22 * GIB}" in captured.err


def test_verify_is_given_the_card(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Options] = []
    monkeypatch.setattr("torchmemlint.runtime.verify.verify", lambda program, resolver, how, *_: asked.append(how))
    main(["verify", "--isolated", "--card", "t4", "--memory", "14.5 GB", "-q", "train.py"])
    assert [(how.card, how.memory) for how in asked] == [("t4", 14_500_000_000)]


def test_the_host_has_no_capacity(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_text("import torch\nfor _ in range(9):\n    torch.ones(4)\n")
    assert main(["trace", "--isolated", "--backend", "cpu", "--output-format", "json", "-q", "train.py"]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["capacity"] is None


def test_estimate_is_for_the_card(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["estimate", "carded_models:model", "--input", "8x64", "--no-alternatives"]
    assert main([*arguments, "--card", "h100", "--memory", "20GiB", "--output-format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["card"], told["capacity"], told["plan"]["memory"]) == ("an H100 with 20.0 GiB", 20 * GIB, 20 * GIB)
    assert (
        told["use"]["backend"] == "simulated (shapes only, allocator model of an H100 with 20.0 GiB; no GPU was used)"
    )
    assert told["use"]["workspace"] >= 2 * cards.WORKSPACE_HOPPER  # a forward's, and a backward's
    assert main([*arguments, "--card", "l4"]) == 0
    assert "fits an L4 (22.0 GiB)" in " ".join(capsys.readouterr().out.split())
    assert main([*arguments, "--card", "t4", "--memory", "256MiB"]) == 0
    assert "does not fit a T4 with 256.0 MiB" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", ["trace", "verify", "estimate"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--card", "voodoo2"], "unknown card 'voodoo2'; it is one of t4, "),
        (["--memory", "much"], "not a size: 'much' (write it like 1GiB, 512 MB or 2048)"),
        (["--memory", "-1GiB"], "not a size: '-1GiB'"),
        (["--memory", "22"], "write 22 with its unit, like 22GiB"),
        (["--memory", "1MiB"], "1.0 MiB are too few for a GPU; the least is 64.0 MiB"),
    ],
)
def test_what_is_wrong_is_said(
    project: Path, capsys: pytest.CaptureFixture[str], command: str, arguments: list[str], message: str
) -> None:
    what = ["carded_models:model", "--input", "8x64"] if command == "estimate" else ["train.py"]
    assert main([command, *arguments, *what]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["trace", "verify"])
@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_only_a_simulation_takes_a_card(
    project: Path, capsys: pytest.CaptureFixture[str], command: str, backend: str
) -> None:
    for option in (["--card", "t4"], ["--memory", "22GiB"]):
        assert main([command, "--isolated", "--backend", backend, *option, "train.py"]) == 2
        complaint = " ".join(capsys.readouterr().err.split())
        assert f"{option[0]} names a GPU to simulate; --backend {backend} measures what is there." in complaint


def test_an_experiment_takes_no_card(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--rule", "TML101", "--card", "t4"]) == 2
    assert "--card and --memory are for a script" in capsys.readouterr().err
