"""TML513 in projects: once, in the first file that pads for a training, and not where the allocator is set up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchmemlint.cli.main import main

PADS = """
import torch
from torch.nn.utils.rnn import pad_sequence


def collate(samples):
    return pad_sequence(samples, batch_first=True)
"""
TRAINS = """
import torch
from torch.utils.data import DataLoader
from {data} import collate


def train(model, optimizer, samples):
    for batch in DataLoader(samples, collate_fn=collate):
        loss = model(batch.to("cuda")).square().mean()
        loss.backward()
        optimizer.step()
"""
LOADS = PADS + "\n\ndef loader(samples):\n    return torch.utils.data.DataLoader(samples, collate_fn=collate)\n"
RUNS = (
    LOADS + "\n\n@torch.no_grad()\ndef run(model, samples):\n    return [model(batch) for batch in loader(samples)]\n"
)
SETS = "import os\n\nos.environ['PYTORCH_ALLOC_CONF'] = 'expandable_segments:True'\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"data.py": LOADS, "train.py": TRAINS}, ["data.py"]),
        ({"data.py": LOADS, "more.py": LOADS, "train.py": TRAINS}, ["data.py"]),
        ({"data.py": LOADS}, []),
        ({"data.py": LOADS, "train.py": TRAINS, "main.py": SETS}, []),
        ({"answer.py": RUNS, "data.py": LOADS, "train.py": TRAINS}, ["data.py"]),
        ({"answer.py": RUNS, "train.py": TRAINS.replace("{data}", "answer")}, []),
        ({"data.py": PADS, "train.py": PADS + TRAINS.replace("from {data} import collate\n", "")}, ["train.py"]),
    ],
)
def test_once_for_a_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], expected: list[str]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    for name, text in files.items():
        (tmp_path / name).write_text(text.replace("{data}", "data"))
    options = ["--no-cache", "--select", "TML513", "--confidence", "possible", "--output-format", "json"]
    assert main(["check", *options, str(tmp_path)]) == 0  # an advice
    found = json.loads(capsys.readouterr().out)
    assert [Path(one["filename"]).name for one in found] == expected
