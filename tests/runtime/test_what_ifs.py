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
from torchmemlint.runtime.eight_bits import EightBitAdam  # noqa: E402
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
MADE = 'model = Model(64, 256, 6).to("cuda")\noptimizer = torch.optim.AdamW(model.parameters())\n'
ON_TWO_RANKS = """
import os
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = Model(64, 256, 6).to("cuda")
"""
SHARED = {
    "fsdp": "for block in model.blocks:\n    fully_shard(block)\nfully_shard(model)\n"
    "optimizer = torch.optim.AdamW(model.parameters())\n",
    "zero": "optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)\n",
}
"""Programs for torchrun: a change runs the first of their ranks alone."""


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


@pytest.mark.slow
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
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no distributed")
@pytest.mark.skipif(not hasattr(torch.distributed, "fsdp"), reason="its FSDP is another one")
@pytest.mark.parametrize("name", sorted(SHARED))
def test_one_rank_needs_what_each_of_two_needs(program: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (change,) = fitted(capsys, "--what-if", name, "--gpus", "2")["changes"]
    program.write_text(PROGRAM.replace(MADE, ON_TWO_RANKS + SHARED[name]))
    both = fitted(capsys, "--nproc-per-node", "2")["given"]["peak"]
    assert change["tried"]["peak"] == pytest.approx(both, rel=0.02)


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no distributed")
def test_who_has_a_process_group_shares_already(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(PROGRAM.replace(MADE, ON_TWO_RANKS + SHARED["zero"]))
    assert main(["fit", "--quiet", "--torchrun", "--steps", "3", "--what-if", "fsdp", "train.py"]) == 0
    assert "fsdp: RuntimeError: the program has a process group of its own" in capsys.readouterr().out


def test_half_the_length_without_a_loader(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(
        PROGRAM.replace("in DataLoader(data, batch_size=8)", "in (data[:8] for _ in range(5))")
        .replace("def forward(self, tokens)", "def forward(self, tokens, wanted)")
        .replace(
            "return self.head(x)", "return nn.functional.cross_entropy(self.head(x).flatten(0, 1), wanted.flatten())"
        )
        .replace("scores = model(tokens[:, :-1])", "loss = model(tokens[:, :-1], tokens[:, 1:])")
        .replace("    loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())\n", "")
    )
    (change,) = fitted(capsys, "--what-if", "half-length")["changes"]
    assert change["saved"] > 0


@pytest.mark.slow
def test_all_can_be_applied(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = fitted(capsys, "--what-if", "all")
    assert [one["name"] for one in values["changes"] if one["tried"] is None] == ["half-answer"]  # it generates nothing
    assert {one["name"] for one in values["changes"]} == {one.name for one in WHAT_IFS}
    saved = {one["name"]: one["saved"] for one in values["changes"]}
    assert (
        min(
            saved[name]
            for name in ("accumulation", "freezing", "lora", "sgd", "adafactor", "adam-8bit", "zero", "fsdp")
        )
        > 0
    )


@pytest.mark.slow
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


SIZES = [(64, 64), (63, 64), (5, 1000), (10,)]
KEPT = [(2 * 4096 + 2 * 16 * 4), 2 * 63 * 64 * 4, (2 * 5000 + 2 * 20 * 4), 2 * 10 * 4]


def test_states_of_a_byte() -> None:
    """As bitsandbytes keeps them: a byte each and a scale for 256, and float32 where there are fewer than 4,096."""
    parameters = [nn.Parameter(torch.ones(size)) for size in SIZES]
    optimizer = EightBitAdam(parameters, lr=0.5)
    sum(one.sum() for one in parameters).backward()
    optimizer.step()
    kept = [sum(part.nbytes for part in optimizer.state[one].values()) for one in parameters]
    assert kept == KEPT
    assert all(torch.equal(one, torch.full_like(one, 0.5)) for one in parameters)


def test_states_of_a_byte_are_those_of_bitsandbytes() -> None:
    optim = pytest.importorskip("bitsandbytes").optim
    parameters = [nn.Parameter(torch.ones(size)) for size in SIZES]
    optimizer = optim.AdamW8bit(parameters)
    for number, one in enumerate(parameters):
        optimizer.init_state(optimizer.param_groups[0], one, 0, number)
    states = [
        {name: part for name, part in optimizer.state[one].items() if isinstance(part, torch.Tensor)}
        for one in parameters
    ]
    kept = [sum(part.nbytes for name, part in one.items() if not name.startswith("qmap")) for one in states]
    assert kept == KEPT


def test_what_ifs_are_chosen_in_the_order_of_the_table() -> None:
    assert [one.name for one in chosen(["sgd", "checkpointing"])] == ["checkpointing", "sgd"]
    assert chosen(["all", "sgd"]) == WHAT_IFS
    assert altering._KINDS.keys() == {one.name for one in WHAT_IFS}
