"""Compare the simulated card with the notebooks of anmechkoe/GPTlearning (`exp13-accelerate`), in docs/accuracy.json.

    python tools/accuracy_notebooks.py                # all runs: a quarter of an hour
    python tools/accuracy_notebooks.py --only fp16    # those whose names hold this text
    python tools/documents.py                         # put the table into docs/accuracy.md

The notebooks fine-tune BERT-large (335 million parameters) on texts of 512 tokens, on an RTX 3090, and print what NVML
says is in use on two cards. Of that, what was in use before anything ran, and a CUDA context, are taken off: what is
left is what torch's allocator reserved. The program here is our own. It does what BERT, `Trainer` and the optimizers of
transformers 4.30, the release of those weeks, do: the same tensors in the same order.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FILE = ROOT / "docs" / "accuracy.json"
CARD, OF_CARD = "rtx3090", 24_258
"""The notebooks' card, and the MiB that a driver of that year left to torch and its context."""
WORDS, WIDTH, INNER, DEPTH, HEADS, LENGTH = 30_522, 1024, 4096, 24, 16, 512
STEPS = 3
"""Of the optimizer: from the second one on, its state is there, and every step is alike."""
MIB = 2**20

RUNS: dict[str, dict[str, Any]] = {
    # the notebook, the MiB in use at the end, and what the run does; each in a process of its own
    "weights": {"notebook": 1, "used": 2564},
    "batch 4": {"notebook": 1, "used": 12852, "batch": 4},
    "batch 1 of 4": {"notebook": 2, "used": 8590, "batch": 1, "parts": 4},
    "batch 8 of 64": {"notebook": 2, "used": 20314, "batch": 8, "parts": 8},
    "checkpointing, batch 1 of 4": {"notebook": 3, "used": 7078, "batch": 1, "parts": 4, "recomputed": True},
    "checkpointing, batch 8 of 64": {
        "notebook": 3,
        "used": 8030,
        "batch": 8,
        "parts": 8,
        "recomputed": True,
    },
    "checkpointing, batch 120": {
        "notebook": 3,
        "used": 24600,
        "batch": 120,
        "recomputed": True,
    },
    "fp16, batch 4": {"notebook": 4, "used": 11224, "batch": 4, "half": True},
    "fp16, checkpointing, batch 1 of 4": {
        "notebook": 4,
        "used": 7574,
        "batch": 1,
        "parts": 4,
        "half": True,
        "recomputed": True,
    },
    "Adafactor, batch 4": {"notebook": 5, "used": 10440, "batch": 4, "adafactor": True},
    "Adafactor, fp16, checkpointing, batch 1 of 4": {
        "notebook": 5,
        "used": 5142,
        "batch": 1,
        "parts": 4,
        "half": True,
        "recomputed": True,
        "adafactor": True,
    },
    "accelerate: all of these": {
        "notebook": 6,
        "used": 6432,
        "batch": 1,
        "parts": 4,
        "half": True,
        "recomputed": True,
        "adafactor": True,
        "momentum": True,
    },
}
BEFORE = 1274
"""MiB in use with a context: 620 before anything ran, and 654. A small tensor of torch's takes 2 more."""


class Attention(nn.Module):
    """Attention that is written out, as before `scaled_dot_product_attention`."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.dropout = nn.Dropout(0.1)
        self.dense = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.last = nn.Dropout(0.1)

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], HEADS, -1).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """From (batch, length, width) to the same."""
        q = self.query(x)
        k, v = self._heads(self.key(x)), self._heads(self.value(x))
        q = self._heads(q)
        scores = torch.matmul(q, k.transpose(-1, -2))
        scores = scores / math.sqrt(WIDTH // HEADS)
        scores = scores + mask
        weights = functional.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        made = torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous()
        return self._out(made.view(*made.shape[:2], WIDTH), x)

    def _out(self, made: Tensor, x: Tensor) -> Tensor:
        made = self.dense(made)
        made = self.last(made)
        return self.norm(made + x)  # type: ignore[no-any-return]  # a module's call is Any


class Layer(nn.Module):
    """Attention, and two linear layers with GELU between them."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.dropout, self.norm = nn.Dropout(0.1), nn.LayerNorm(WIDTH, eps=1e-12)

    def _inner(self, x: Tensor) -> Tensor:
        x = self.up(x)
        return functional.gelu(x)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """From (batch, length, width) to the same."""
        x = self.attention(x, mask)
        inner = self._inner(x)
        made = self.dropout(self.down(inner))
        return self.norm(made + x)  # type: ignore[no-any-return]  # as above


class Bert(nn.Module):
    """BERT-large with a classifier of two classes. `recomputed` checkpoints each layer."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.kinds = nn.Embedding(2, WIDTH)
        self.norm, self.dropout = nn.LayerNorm(WIDTH, eps=1e-12), nn.Dropout(0.1)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.pooler, self.last, self.classifier = nn.Linear(WIDTH, WIDTH), nn.Dropout(0.1), nn.Linear(WIDTH, 2)
        self.register_buffer("numbers", torch.arange(LENGTH).expand(1, -1))
        self.recomputed = False

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        """The loss of tokens (batch, length)."""
        mask = torch.ones(tokens.shape, device=tokens.device)[:, None, None, :]
        mask = (1.0 - mask) * torch.finfo(torch.float32).min
        kinds = torch.zeros(tokens.shape, dtype=torch.long, device=tokens.device)
        x = self.words(tokens) + self.kinds(kinds)
        x += self.places(self.numbers)
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = checkpoint(layer, x, mask, use_reentrant=True) if self.recomputed else layer(x, mask)
        scores = self.classifier(self.last(torch.tanh(self.pooler(x[:, 0]))))
        return functional.cross_entropy(scores.view(-1, 2), labels.view(-1))


class AdamW(torch.optim.Optimizer):
    """That of transformers: one parameter after the other, in place but for a denominator."""

    def __init__(self, parameters: Iterator[nn.Parameter]) -> None:
        super().__init__(parameters, {"lr": 5e-5})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # no closure is asked
        """Update each parameter."""
        del closure
        for parameter in self.param_groups[0]["params"]:
            if parameter.grad is None:
                continue
            gradient, state = parameter.grad, self.state[parameter]
            if not state:
                state["mean"], state["square"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            state["mean"].mul_(0.9).add_(gradient, alpha=0.1)
            state["square"].mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            below = state["square"].sqrt().add_(1e-8)
            parameter.addcdiv_(state["mean"], below, value=-5e-5)


class Adafactor(torch.optim.Optimizer):
    """That of transformers, whose second moments of matrices are a row and a column."""

    def __init__(self, parameters: Iterator[nn.Parameter], momentum: bool) -> None:
        super().__init__(parameters, {"lr": 5e-5})
        self.momentum = momentum

    @staticmethod
    def _size(tensor: Tensor) -> Tensor:
        return tensor.norm(2) / tensor.numel() ** 0.5

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # as above
        """Update each parameter."""
        del closure
        for parameter in self.param_groups[0]["params"]:
            if parameter.grad is None:
                continue
            gradient, state = parameter.grad, self.state[parameter]
            factored = gradient.dim() >= 2
            if not state:
                if self.momentum:
                    state["mean"] = torch.zeros_like(gradient)
                if factored:
                    state["row"], state["column"] = (
                        gradient.new_zeros(len(gradient)),
                        gradient.new_zeros(gradient.shape[1]),
                    )
                else:
                    state["square"] = torch.zeros_like(gradient)
            state["size"] = self._size(parameter)
            update = gradient**2 + 1e-30
            if factored:
                state["row"].mul_(0.9).add_(update.mean(dim=-1), alpha=0.1)
                state["column"].mul_(0.9).add_(update.mean(dim=-2), alpha=0.1)
                row = (state["row"] / state["row"].mean(dim=-1, keepdim=True)).rsqrt_().unsqueeze(-1)
                update = torch.mul(row, state["column"].unsqueeze(-2).rsqrt())
                update.mul_(gradient)
            else:
                update = state["square"].mul_(0.9).add_(update, alpha=0.1).rsqrt().mul_(gradient)
            update.div_(self._size(update).clamp_(min=1.0)).mul_(5e-5)
            if self.momentum:
                state["mean"].mul_(0.9).add_(update, alpha=0.1)
                update = state["mean"]
            parameter.add_(-update)


def train(
    model: Bert,
    batch: int,
    parts: int = 1,
    recomputed: bool = False,
    half: bool = False,
    adafactor: bool = False,
    momentum: bool = False,
) -> None:
    """Some steps, as `Trainer` does them, of batches in parts."""
    model.recomputed = recomputed
    model.train()
    optimizer: torch.optim.Optimizer = (
        Adafactor(model.parameters(), momentum) if adafactor else AdamW(model.parameters())
    )
    scaler = torch.amp.GradScaler("cuda", enabled=half)
    model.zero_grad()
    for _ in range(STEPS):
        for _ in range(parts):
            tokens = torch.ones(batch, LENGTH, dtype=torch.long).to("cuda")
            labels = torch.zeros(batch, dtype=torch.long).to("cuda")
            with torch.autocast("cuda", torch.float16, enabled=half):
                loss = model(tokens, labels)
            loss = loss / parts
            scaler.scale(loss).backward()  # type: ignore[no-untyped-call]  # torch gives it no types
            loss = loss.detach()
        if not momentum:  # the loop of that notebook does not clip
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        model.zero_grad()


def reserved(name: str) -> int:
    """Bytes that the allocator of a simulated card has reserved at the end of a run, and of those before it."""
    from torchmemlint.runtime import track_memory

    named = ("batch", "parts", "recomputed", "half", "adafactor", "momentum")
    left = (OF_CARD - (BEFORE - 620)) * MIB
    with track_memory("simulated", fake=True, card=CARD, memory=left):
        torch.ones((1, 1)).to("cuda")
        model = Bert()
        model.to("cuda")
        if "batch" in RUNS[name]:
            train(model, **{key: value for key, value in RUNS[name].items() if key in named})
        return int(torch.cuda.memory_reserved())


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate the runs, and keep what was measured beside it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the runs whose names hold this text")
    only = parser.parse_args(arguments).only
    for name, run in RUNS.items():
        if only not in name:
            continue
        data = json.loads(FILE.read_text(encoding="utf-8"))
        measured = run["used"] - BEFORE
        found = {"notebook": run["notebook"], "used_mib": run["used"], "measured_mib": measured}
        found["simulated_mib"] = reserved(name) // MIB
        print(name, found, f"{found['simulated_mib'] / measured - 1:+.1%}", flush=True)
        kept = data.get("notebooks", {}).get("runs", {})
        about = {"torch": torch.__version__, "date": date.today().isoformat()}
        data["notebooks"] = {**about, "runs": {one: kept[one] for one in RUNS if one in kept} | {name: found}}
        FILE.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
