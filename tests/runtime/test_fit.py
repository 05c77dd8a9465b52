"""`torchmemlint fit`: its search, and what it says of programs that run in child processes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
from torchmemlint.cli.main import main
from torchmemlint.runtime.fit import Margin, Variation, largest
from torchmemlint.runtime.simulated import cards

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fit.md"
MIB = 1 << 20
# A tensor of so many MiB, and a cache of 100 MiB that goes before it is made.
PROGRAM = """
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=1)
size = parser.parse_args().size
cached = torch.ones(100 << 20, dtype=torch.uint8, device="cuda")
del cached
weight = torch.ones(4, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(5):
    kept = torch.ones(size << 20, dtype=torch.uint8, device="cuda")
    weight.sum().backward()
    optimizer.step()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"```console\n\$ torchmemlint (.*?)\n(.*?)```", text, re.DOTALL)
    assert program is not None
    assert shown is not None
    (tmp_path / "train.py").write_text(program[1])
    monkeypatch.chdir(tmp_path)
    assert main(shown[1].split()) == 1
    said = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert said == shown[2].splitlines()


@pytest.mark.slow
def test_given_back_blocks_make_room(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context = -(-cards.CONTEXT[1] // MIB)
    memory = f"{context + 302}MiB"
    # 100 MiB of cache, the tensor, and the one of the step before: 240 MiB of tensors at once, 340 reserved.
    arguments = ["fit", "--memory", memory, "--output-format", "json", "train.py", "--size"]
    assert main([*arguments, "120"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["fits"]
    assert told["given"]["needed"] > told["capacity"] == (context + 302) * MIB
    assert told["missing"] == 0
    assert main([*arguments, "200"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["fits"], told["largest"], told["tried"]) == (False, None, [])
    assert told["missing"] == told["given"]["needed"] - told["capacity"] > 0


@pytest.mark.slow
def test_a_margin_is_counted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["fit", "--memory", "1GiB", "--output-format", "json", "train.py", "--size", "200"]
    assert main(arguments) == 0
    reserved = json.loads(capsys.readouterr().out)["given"]["reserved"]
    assert main([*arguments[:1], "--margin", "50%+100MiB", *arguments[1:]]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["given"]["needed"] == reserved * 3 // 2 + 100 * MIB + cards.CONTEXT[1]
    assert told["margin"] == {"share": 0.5, "nbytes": 100 * MIB}
    assert main([*arguments[:1], "--margin", "10%", *arguments[1:3], *arguments[5:]]) == 0
    assert "with a CUDA context and the margin" in capsys.readouterr().out


@pytest.mark.parametrize("written", ["", "18", "%", "18%+", "1.5GiB+18%", "-5%", "a lot"])
def test_what_is_no_margin(project: Path, capsys: pytest.CaptureFixture[str], written: str) -> None:
    assert main(["fit", "--margin", written, "train.py"]) == 2
    assert "not a" in capsys.readouterr().err


def test_margins() -> None:
    assert Margin.parse("18%") == Margin(0.18)
    assert Margin.parse("1.5GiB") == Margin(0.0, 3 << 29)
    assert Margin.parse("12.5% + 100 MiB") == Margin(0.125, 100 * MIB)
    margin = Margin(0.18, 3 << 29)
    left = margin.left(40 << 30)
    assert margin.with_it(left) <= 40 << 30 < margin.with_it(left + 2)
    assert margin.left(1 << 30) < 0


@pytest.mark.slow
def test_an_option_that_is_not_given_is_added(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    memory = f"{-(-cards.CONTEXT[1] // MIB) + 310}MiB"
    assert main(["fit", "--memory", memory, "--vary", "size=64..256", "--output-format", "json", "train.py"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["given"]["value"] is None
    assert [(one["value"], one["fits"]) for one in told["tried"]] == [(128, True), (256, False)]
    assert told["largest"] == 128


def test_a_program_without_the_option(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--vary", "batch-size=1..4", "train.py"]) == 2
    assert "`train.py --batch-size 2`" in " ".join(capsys.readouterr().err.split())


def test_a_program_that_uses_no_gpu(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_text("import torch\nfor _ in range(9):\n    torch.ones(4)\n")
    assert main(["fit", "train.py"]) == 2
    assert "it puts nothing on a GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("batch-size", "not a range: 'batch-size' (write it like batch-size=1..256)"),
        ("batch-size=8", "not a range"),
        ("batch-size=65..100", "no power of two lies in 65..100"),
        ("batch-size=8..1", "no power of two lies in 8..1"),
    ],
)
def test_what_is_no_range(project: Path, capsys: pytest.CaptureFixture[str], vary: str, message: str) -> None:
    assert main(["fit", "--vary", vary, "train.py"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "given", "changed"),
    [
        (["--lr", "1", "--batch-size", "8", "data"], 8, ("--lr", "1", "--batch-size", "4", "data")),
        (["--batch-size=8", "data"], 8, ("--batch-size=4", "data")),
        (["batch-size=8"], 8, ("batch-size=4",)),
        (["data"], None, ("data", "--batch-size", "4")),
        (["--batch-size", "auto"], None, ("--batch-size", "4")),
    ],
)
def test_arguments(arguments: list[str], given: int | None, changed: tuple[str, ...]) -> None:
    variation = Variation.parse("batch-size=1..16")
    assert variation.values == (1, 2, 4, 8, 16)
    assert variation.given(arguments) == given
    assert variation.applied(arguments, 4) == changed
    assert Variation.parse("--batch-size=3..5").values == (4,)


@pytest.mark.parametrize("bound", range(11))
@pytest.mark.parametrize("known", [None, 1, 32, 512, 7])
def test_bisection(bound: int, known: int | None) -> None:
    values = [1 << exponent for exponent in range(10)]
    asked: list[int] = []

    def fits(value: int) -> bool:
        asked.append(value)
        return value < 1 << bound

    assert largest(values, fits, known) == (1 << (bound - 1) if bound else None)
    assert len(asked) == len(set(asked)) <= 5
