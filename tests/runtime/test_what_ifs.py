"""`torchmemlint fit --what-if`: programs with a change that is made as they run need what those need that have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from torchmemlint.cli.main import main  # noqa: E402
from torchmemlint.runtime import altering  # noqa: E402
from torchmemlint.runtime.what_ifs import WHAT_IFS, chosen  # noqa: E402

PROGRAM = """
import torch
import torch.utils.checkpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(x)


class Model(nn.Module):
    def __init__(self, words, width, depth):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = Model(64, 256, 6).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.zeros(64, 257, dtype=torch.long))
for (tokens,) in DataLoader(data, batch_size=8):
    tokens = tokens.to("cuda")
    scores = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BY_HAND = {
    "checkpointing": ("x = block(x)", "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"),
    "autocast": (
        "    scores = model(tokens[:, :-1])",
        "    with torch.autocast('cuda', torch.bfloat16):\n        scores = model(tokens[:, :-1])",
    ),
    "bf16": ('.to("cuda")\noptimizer', '.to("cuda", torch.bfloat16)\noptimizer'),
    "sgd": ("AdamW(model.parameters())", "SGD(model.parameters(), lr=1e-3)"),
    "half-length": ("257", "128"),
}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path / "train.py"


def fitted(capsys: pytest.CaptureFixture[str], *options: str, expected: int = 0) -> dict[str, Any]:
    code = main(["fit", "--quiet", "--steps", "3", "--output-format", "json", *options, "train.py"])
    told = capsys.readouterr()
    assert code == expected, told.err
    values: dict[str, Any] = json.loads(told.out)
    return values


def test_a_change_needs_what_the_changed_program_needs(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = fitted(capsys, "--what-if", "checkpointing")
    (change,) = values["changes"]
    assert change["saved"] > 0
    program.write_text(PROGRAM.replace(*BY_HAND["checkpointing"]))
    assert change["tried"]["peak"] == fitted(capsys)["given"]["peak"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BY_HAND.keys() - {"checkpointing"}))
def test_the_others_do_so_too(program: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (change,) = fitted(capsys, "--what-if", name)["changes"]
    program.write_text(PROGRAM.replace(*BY_HAND[name]))
    assert change["tried"]["peak"] == pytest.approx(fitted(capsys)["given"]["peak"], rel=0.02)


@pytest.mark.slow
def test_all_can_be_applied(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = fitted(capsys, "--what-if", "all")
    assert not [(one["name"], one["problem"]) for one in values["changes"] if one["tried"] is None]
    assert {one["name"] for one in values["changes"]} == {one.name for one in WHAT_IFS}
    saved = {one["name"]: one["saved"] for one in values["changes"]}
    assert min(saved[name] for name in ("accumulation", "freezing", "lora", "sgd", "adafactor")) > 0


def test_what_cannot_be_applied_is_said(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(
        "import torch\nweight = torch.ones(64 << 20, device='cuda', requires_grad=True)\n"
        "for _ in range(5):\n    weight.sum().backward()\n    weight.grad = None\n"
    )
    options = ["fit", "--quiet", "--memory", "900MiB", "--what-if", "half-length"]
    assert main([*options, "train.py"]) == 1
    told = capsys.readouterr().out
    assert "half-length: cannot be applied: it needs a DataLoader that gives integer tensors" in told
    assert "None of these changes is enough by itself." in told


def test_blocks_are_the_outermost_of_a_class() -> None:
    def block() -> nn.Module:
        return nn.TransformerEncoderLayer(8, 2, 16)

    stage = nn.Sequential(block(), block())
    assert [len(group) for group in altering.blocks(nn.ModuleList([block() for _ in range(3)]))] == [3]
    assert [len(group) for group in altering.blocks(nn.TransformerEncoder(block(), 4))] == [4]
    holder = nn.Module()
    holder.features, holder.classifier = stage, nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    assert [len(group) for group in altering.blocks(holder)] == [2]
    assert [len(group) for group in altering.blocks(nn.ModuleList([stage, nn.Sequential(block(), block())]))] == [2]
    assert not altering.blocks(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)))


def test_what_ifs_are_chosen_in_the_order_of_the_table() -> None:
    assert [one.name for one in chosen(["sgd", "checkpointing"])] == ["checkpointing", "sgd"]
    assert chosen(["all", "sgd"]) == WHAT_IFS
    assert altering._KINDS.keys() == {one.name for one in WHAT_IFS}
