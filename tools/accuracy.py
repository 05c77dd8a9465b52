"""Compare the simulated card with what others measured on a GPU and published: docs/accuracy.json.

    python tools/accuracy.py snapshots                      # the eight snapshots of a transformer: some minutes
    python tools/accuracy.py truth DIRECTORY                # their totals again, from the pickles themselves
    python tools/accuracy.py models --table fake_tensor.xlsx --seconds 480   # needs timm and openpyxl
    python tools/documents.py                               # put the tables into docs/accuracy.md

The snapshots are those of Wedsonlin/assignment2-systems (`results/`): a transformer of 424 million parameters, batches
of 4, after 5 steps of warm-up. The program here is our own, and follows that repository's model and its
`memory_profile`; it makes the same tensors in the same order. The table of models is that of itu-rad/GPUMemNet
(`Related_works/FakeTensor/fake_tensor.xlsx`): peaks that nvidia-smi showed while models of timm were trained.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import random
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FILE = ROOT / "docs" / "accuracy.json"
CARD = "a100-80gb"
"""The snapshots do not name their card. It has cuBLAS's workspace of before Hopper, and at least 25 GB."""

WORDS, WIDTH, INNER, DEPTH, HEADS = 10_000, 1024, 4096, 24, 16
BATCH, WARM_UP = 4, 5
FIGURES = ("peak", "allocated", "reserved")
SEED = 47

# -- the transformer ---------------------------------------------------------------------------------------------------


class Product(nn.Module):
    """A layer without a bias. (..., wide) to (..., out)."""

    def __init__(self, wide: int, out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out, wide))

    def forward(self, x: Tensor) -> Tensor:
        """The product with the weight."""
        return torch.einsum("...i,oi->...o", x, self.weight)


class Scale(nn.Module):
    """Division by the root of the mean square. (..., width) to the same."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Scale in float32."""
        kind, x = x.dtype, x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        return (self.weight * x).to(kind)


class Rotation(nn.Module):
    """Rotary positions. (..., length, width of a head) to the same."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(length), 10_000.0 ** -(torch.arange(0, width, 2) / width))
        self.register_buffer("turns", torch.stack((angles.cos(), angles.sin())), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Turn neighbours by the angle of their place."""
        first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = self.turns[:, : x.size(-2), :].unbind(0)
        turned = cos * first - sin * second
        other = sin * first + cos * second
        return torch.concat((turned, other), dim=-1)


def softmax(x: Tensor) -> Tensor:
    """Softmax of the last dimension, step by step."""
    shifted = x - torch.max(x, dim=-1, keepdim=True)[0]
    powers = torch.exp(shifted)
    return powers / torch.sum(powers, dim=-1, keepdim=True)


def silu(x: Tensor) -> Tensor:
    """SiLU, whose sigmoid is a tensor of its own."""
    return x * torch.sigmoid(x)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Attention with its weights in memory."""
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(k.shape[-1])
    scores = torch.where(mask, scores, float("-inf"))
    weights = softmax(scores)
    return torch.einsum("...qk,...kd->...qd", weights, v)


class Attention(nn.Module):
    """Causal attention of some heads. (batch, length, width) to the same."""

    def __init__(self, rotation: Rotation) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (Product(WIDTH, WIDTH) for _ in range(4))
        self.rotation = rotation

    def forward(self, x: Tensor) -> Tensor:
        """Attend to what comes before."""
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = (one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in (q, k, v))
        q = self.rotation(q)
        k = self.rotation(k)
        places = torch.arange(x.shape[1], device=x.device)
        mask = (places[:, None] >= places[None, :])[None]
        mixed = attend(q, k, v, mask)
        mixed = mixed.transpose(1, 2).flatten(2).contiguous()
        return self.out(mixed)  # type: ignore[no-any-return]  # a module's call has no type


class Gated(nn.Module):
    """A perceptron with a gate. (..., width) to the same."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.down, self.up = Product(WIDTH, INNER), Product(INNER, WIDTH), Product(WIDTH, INNER)

    def forward(self, x: Tensor) -> Tensor:
        """Widen, open the gate, narrow."""
        return self.down(silu(self.gate(x)) * self.up(x))  # type: ignore[no-any-return]  # as above


class Block(nn.Module):
    """Attention and a perceptron, each after a scale. (batch, length, width) to the same."""

    def __init__(self, rotation: Rotation) -> None:
        super().__init__()
        self.attention, self.perceptron = Attention(rotation), Gated()
        self.before, self.between = Scale(WIDTH), Scale(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Add what each half gives."""
        mixed = self.attention(self.before(x))
        middle = x + mixed
        changed = self.perceptron(self.between(middle))
        result: Tensor = middle + changed
        return result


class Words(nn.Module):
    """A table of vectors. (batch, length) of numbers to (batch, length, width)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(WORDS, WIDTH))

    def forward(self, words: Tensor) -> Tensor:
        """Look the words up."""
        return self.weight[words, :]


class Language(nn.Module):
    """The transformer: 424 million parameters. (batch, length) to (batch, length, words)."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.words = Words()
        self.rotation = Rotation(length, WIDTH // HEADS)
        self.blocks = nn.ModuleList(Block(self.rotation) for _ in range(DEPTH))
        self.scale, self.head = Scale(WIDTH), Product(WIDTH, WORDS)

    def forward(self, words: Tensor) -> Tensor:
        """Scores for each word that could follow."""
        x = vectors = self.words(words)  # noqa: F841 - the vectors live as long as the pass
        for block in self.blocks:
            x = block(x)
        x = self.scale(x)
        return self.head(x)  # type: ignore[no-any-return]  # as above


class Adam(torch.optim.Optimizer):
    """AdamW, one tensor after the other, not in place."""

    def __init__(self, parameters: Iterator[nn.Parameter]) -> None:
        super().__init__(parameters, {"lr": 1e-3})

    def step(self, closure: None = None) -> None:  # type: ignore[override]  # no closure is asked
        """Update each parameter. What one turn of the loop made lives until the next has made its own."""
        del closure
        for parameter in self.param_groups[0]["params"]:
            if parameter.grad is None:
                continue
            gradient, state = parameter.grad.data, self.state[parameter]
            turn = state.get("turn", 1)
            rate = 1e-3 * math.sqrt(1 - 0.999**turn) / (1 - 0.9**turn)
            parameter.data -= 1e-3 * 0.01 * parameter.data
            last_mean = state.get("mean", torch.zeros_like(gradient))
            last_square = state.get("square", torch.zeros_like(gradient))
            mean = 0.9 * last_mean + (1 - 0.9) * gradient
            square = 0.999 * last_square + (1 - 0.999) * torch.square(gradient)
            parameter.data -= rate * mean / (torch.sqrt(square) + 1e-8)
            state["mean"], state["square"], state["turn"] = mean, square, turn + 1


def loss_of(logits: Tensor, wanted: Tensor) -> Tensor:
    """The cross-entropy, from the logarithm of a softmax that is worked out step by step."""
    highest = torch.max(logits, dim=-1, keepdim=True)[0]
    shifted = logits - highest
    negative = -(shifted - torch.log(torch.sum(torch.exp(shifted), dim=-1, keepdim=True)))
    return torch.mean(torch.gather(negative, -1, wanted.unsqueeze(-1)))


def steps(length: int, *, training: bool, autocast: bool) -> None:
    """Warm up, forget the peak, and do one step more, whose tensors are alive at the end as in that program."""
    model = Language(length)
    model.to("cuda")
    optimizer = Adam(model.parameters())
    draw = lambda many: torch.randint(0, WORDS, (many, BATCH, length), device="cuda")  # noqa: E731
    lower = lambda: torch.autocast("cuda", torch.bfloat16, enabled=autocast)  # noqa: E731
    warm, last = draw(WARM_UP), draw(1)
    if not training:
        model.eval()
        with torch.inference_mode():
            for batch in warm:
                with lower():
                    model(batch)
            torch.cuda.reset_peak_memory_stats()
            with lower():
                model(last[0])
        _note()
        return
    warm_wanted, last_wanted = draw(WARM_UP), draw(1)
    for batch, wanted in zip(warm, warm_wanted, strict=True):
        with lower():
            output = model(batch)
            loss = loss_of(output, wanted)
        loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
        optimizer.step()
        optimizer.zero_grad()
    del output, loss
    torch.cuda.reset_peak_memory_stats()
    with lower():
        output = model(last[0])
        loss = loss_of(output, last_wanted[0])
    loss.backward()  # type: ignore[no-untyped-call]  # as above
    optimizer.step()
    _note()


_noted: dict[str, int] = {}


def _note() -> None:
    """Keep what the card says while the step's tensors are alive."""
    cuda = torch.cuda
    _noted.update(peak=cuda.max_memory_allocated(), allocated=cuda.memory_allocated(), reserved=cuda.memory_reserved())


def simulated(length: int, *, training: bool, autocast: bool) -> dict[str, int]:
    """Bytes that a simulated card gives for a snapshot's program: at the step's peak, and at its end."""
    from torchmemlint.runtime import track_memory

    with track_memory("simulated", fake=True, card=CARD):
        steps(length, training=training, autocast=autocast)
    return dict(_noted)


def truth_of(path: Path) -> dict[str, Any]:
    """A snapshot's own totals, and whether its calls ran under autocast. The file is trusted."""
    with path.open("rb") as file:
        snapshot = pickle.load(file)
    segments = snapshot["segments"]
    allocated, reserved = (sum(one[name] for one in segments) for name in ("allocated_size", "total_size"))
    changes = []
    for event in next(filter(None, snapshot["device_traces"])):
        rounded = -(-event["size"] // 512) * 512
        if event["action"] in ("alloc", "free_completed"):
            changes.append(rounded if event["action"] == "alloc" else -rounded)
    now = peak = allocated - sum(changes)
    for change in changes:
        now += change
        peak = max(peak, now)
    return {
        "autocast": b"at::autocast" in path.read_bytes(),
        "measured": {"peak": peak, "allocated": allocated, "reserved": reserved},
    }


# -- the models of timm ------------------------------------------------------------------------------------------------


def table_of(path: Path) -> list[tuple[str, int, int]]:
    """The rows of GPUMemNet's table: a model of timm, its batch, and the MiB that the card had in use."""
    import openpyxl  # only this command needs it

    rows = openpyxl.load_workbook(path, read_only=True).active.iter_rows(min_row=2, values_only=True)
    return [(name.rsplit("_", 1)[0], int(batch), int(used)) for name, batch, used, *_ in rows if used]


def trained(name: str, batch: int) -> dict[str, int]:
    """Bytes that a simulated card gives for two steps of a model of timm. It needs timm."""
    import timm

    from torchmemlint.runtime import track_memory

    with track_memory("simulated", fake=True, card="a100-40gb", memory=2**40) as memory:
        model = timm.create_model(name).cuda().train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        size = model.default_cfg["input_size"]
        for _ in range(2):  # the second has the optimizer's state
            images = torch.randn(batch, *size, device="cuda")
            scores = model(images)
            labels = torch.randint(0, scores.shape[1], (batch,), device="cuda")
            loss = nn.functional.cross_entropy(scores, labels)
            loss.backward()  # type: ignore[no-untyped-call]  # as above
            optimizer.step()
            optimizer.zero_grad()
    return {"peak": memory.peak, "reserved": memory.peak_reserved, "scores": scores.shape[1]}


# -- what is kept ------------------------------------------------------------------------------------------------------


def kept() -> dict[str, Any]:
    """What was kept last."""
    return dict(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.exists() else {}


def keep(data: dict[str, Any]) -> None:
    """Write what is known now."""
    FILE.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def take_truth(directory: Path) -> None:
    """Read the totals of the snapshots in a directory."""
    data = kept()
    snapshots = {}
    for path in sorted(directory.glob("medium_*_memory_snapshot.pickle")):
        _, length, kind, *_ = path.stem.split("_")
        snapshots[f"{kind} {length}"] = {"file": path.name, "length": int(length), "training": kind == "training"}
        snapshots[f"{kind} {length}"] |= truth_of(path)
    if len(snapshots) != 8:
        sys.exit(f"{directory} holds {len(snapshots)} of the eight snapshots")
    old = data.get("snapshots", {})
    named = sorted(snapshots, key=lambda name: (snapshots[name]["training"], snapshots[name]["length"]))
    keep(data | {"snapshots": {name: old.get(name, {}) | snapshots[name] for name in named}})


def take_snapshots(only: str) -> None:
    """Simulate the snapshots' programs whose names hold some text."""
    for name, one in kept()["snapshots"].items():
        if only not in name:
            continue
        found = simulated(one["length"], training=one["training"], autocast=one["autocast"])
        print(name, found, flush=True)
        data = kept() | {"torch": torch.__version__, "card": CARD, "date": date.today().isoformat()}
        data["snapshots"][name]["simulated"] = found
        keep(data)


def take_models(table: Path, seconds: float) -> None:
    """Simulate models of the table in an order that a seed gives, one batch of each, until the time is over.

    What the sample has already, by the same releases, stays as it is.
    """
    import timm

    rows = table_of(table)
    about = {"timm": timm.__version__, "torch": torch.__version__}
    before = kept().get("gpumemnet", {})
    same = all(before.get(name) == release for name, release in about.items())
    known = {one["model"]: one for one in before["sample"]} if same else {}
    names = sorted({name for name, _, _ in rows})
    chance = random.Random(SEED)
    chance.shuffle(names)
    end = time.monotonic() + seconds
    taken = []
    for name in names:
        if time.monotonic() > end:
            break
        _, batch, used = chance.choice(sorted(row for row in rows if row[0] == name))
        one: dict[str, Any] = {"model": name, "batch": batch, "used_mib": used}
        if name in known:
            taken.append(known[name])
            continue
        try:
            one |= trained(name, batch)
        except Exception as problem:  # noqa: BLE001 - whatever stops a model is a figure of its own
            one["error"] = f"{type(problem).__name__}: {problem}".splitlines()[0][:160]
        print(one, flush=True)
        taken.append(one)
        counts = {"table": len(rows), "models": len(names), "date": date.today().isoformat()}
        keep(kept() | {"gpumemnet": {**counts, **about, "sample": taken}})


def main() -> None:
    """Take one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    snapshots = parts.add_parser("snapshots", help="simulate the snapshots' programs")
    snapshots.add_argument("--only", default="", help="those whose names hold this text, as in `training 128`")
    truth = parts.add_parser("truth", help="read the snapshots' totals")
    truth.add_argument("directory", type=Path)
    models = parts.add_parser("models", help="simulate models of GPUMemNet's table")
    models.add_argument("--table", type=Path, required=True)
    models.add_argument("--seconds", type=float, default=480)
    choices = parser.parse_args()
    if choices.part == "truth":
        take_truth(choices.directory)
    elif choices.part == "snapshots":
        take_snapshots(choices.only)
    else:
        take_models(choices.table, choices.seconds)


if __name__ == "__main__":
    main()
