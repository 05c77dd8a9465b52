"""Unsafe fixes of TML204 and TML205 on their fixtures: values that the message promises to be the same are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Finding
from torchmemlint.fixes.apply import fix_text

FIXTURES = Path(__file__).parents[2] / "fixtures"


def both(name: str) -> list[dict[str, Any]]:
    """What the fixture defines, as it is and with its unsafe fixes."""
    path = FIXTURES / name
    text = path.read_text(encoding="utf-8")

    def check(text: str) -> list[Finding]:
        return check_text(text, path, frozenset({name[:6]}))

    result = fix_text(text, check(text), check, unsafe=True)
    assert result.applied
    found = []
    for program in (text, result.text):
        names: dict[str, Any] = {"__name__": path.stem}
        exec(compile(program, str(path), "exec", dont_inherit=True), names)
        found.append(names)
    return found


def batches(count: int = 3) -> list[tuple[torch.Tensor, torch.Tensor]]:
    drawn = torch.Generator().manual_seed(1)
    return [(torch.randn(8, 4, generator=drawn), torch.randn(8, 4, generator=drawn)) for _ in range(count)]


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))


def clipped(names: dict[str, Any]) -> object:
    critic = network()
    names["train"](critic, batches(), torch.optim.SGD(critic.parameters(), lr=0.1), 0.2)
    return [p.detach() for p in critic.parameters()]


def copied(names: dict[str, Any]) -> object:
    model, target = network(), network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    names["train"](model, target, batches(), nn.MSELoss(), optimizer, 0.5)
    return [p.detach() for p in (*model.parameters(), *target.parameters())] + names["norm"](nn.ModuleList(model))


def initialised(names: dict[str, Any]) -> object:
    layer = nn.Linear(4, 4)
    torch.manual_seed(0)
    names["reset"](layer)
    prototypes = names["Prototypes"](3, 4)
    return [layer.weight.detach(), layer.bias.detach(), prototypes.scale.detach(), prototypes.centres.detach()[0]]


def evaluated(names: dict[str, Any]) -> object:
    data = [(x, torch.arange(8) % 4) for x, _ in batches()]
    return [torch.tensor(part) for part in names["evaluate"](network(), data, "cpu")]


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("TML205-tensor-data-attribute/bad_clipped.py", clipped),
        ("TML205-tensor-data-attribute/bad_copied.py", copied),
        ("TML205-tensor-data-attribute/bad_initialised.py", initialised),
        ("TML204-no-grad-instead-of-inference-mode/bad_evaluation.py", evaluated),
    ],
)
def test_values_stay_the_same(name: str, run: Callable[[dict[str, Any]], Any]) -> None:
    before, after = (run(names) for names in both(name))
    assert len(before) == len(after) > 0
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
