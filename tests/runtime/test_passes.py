"""A loop that is entered again and again beside a training: what it piles up until it ends, and what stays."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
from tests.runtime.tracing import trace

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 10), nn.Linear(10, 1)
        self.seen = []

    def forward(self, x):
        hidden = self.first(x).sigmoid()
        self.seen.append(hidden.mean())
        return self.last(hidden).sigmoid()


def validate(model, loader):
    total = 0.0
    for x in loader:
        total += model(x).sum()
    return total / len(loader)


def main():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(torch.randn(40, 6), batch_size=4)
    for epoch in range(EPOCHS):
        for x in loader:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
        print(validate(model, loader).item())


main()
"""
INPUT, HIDDEN, OUTPUT, SCALAR = 4 * 6 * 4, 4 * 10 * 4, 4 * 1 * 4, 4


@pytest.mark.parametrize("epochs", [1, 2])
def test_what_stays_and_what_goes_with_the_loop(tmp_path: Path, epochs: int) -> None:
    script = tmp_path / "train.py"
    script.write_text(PROGRAM.replace("EPOCHS", str(epochs)))
    lines = [line.strip() for line in PROGRAM.splitlines()]
    at = {text: lines.index(text) + 1 for text in ("total += model(x).sum()", "self.seen.append(hidden.mean())")}
    loop = f"loop {script}:{lines.index('for x in loader:') + 1}"
    total, seen = trace(script)
    # What `total` has of a turn; the input and the hidden values are kept by `seen`, too, and stay.
    assert (total.line.line, total.growth.series) == (at["total += model(x).sum()"], loop)
    assert total.bytes_per_turn == INPUT + HIDDEN + OUTPUT
    assert total.stays == INPUT + HIDDEN
    assert total.holder is not None
    assert total.holder.name == "total"
    assert (seen.line.line, seen.growth.series, seen.stays) == (at["self.seen.append(hidden.mean())"], loop, None)
    assert seen.bytes_per_turn == INPUT + HIDDEN + SCALAR
    # In the training, the graph is spent.
    assert [(one.series.partition(" ")[0], one.bytes_per_turn) for one in seen.besides] == [("optimizer", SCALAR)]
