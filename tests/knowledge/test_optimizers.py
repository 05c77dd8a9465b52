"""What optimizers keep for each parameter, counted on torch's own."""

from __future__ import annotations

from typing import Any

import pytest

from torchmemlint.knowledge.optimizers import KEEPS, keeps

torch = pytest.importorskip("torch")

COUNTED = [name for name in KEEPS if name.startswith("torch.") and name != "torch.optim.SparseAdam"]
SIZE = 1000


def kept(name: str, settings: dict[str, Any]) -> float:
    """Numbers in the state of one parameter after a step, for each number of the parameter."""
    parameter = torch.nn.Parameter(torch.ones(SIZE))
    optimizer = getattr(torch.optim, name.rpartition(".")[2])([parameter], **settings)
    parameter.grad = torch.ones(SIZE)
    optimizer.step()
    tensors = [value for value in optimizer.state[parameter].values() if isinstance(value, torch.Tensor)]
    return sum(tensor.numel() for tensor in tensors) / SIZE


@pytest.mark.parametrize("name", COUNTED)
def test_state_is_what_torch_makes(name: str) -> None:
    momentum_only = {"lr": 0.1} if name.endswith("SGD") else {}
    assert kept(name, momentum_only) == pytest.approx(keeps(name, {}), abs=0.01)


@pytest.mark.parametrize("name", COUNTED)
def test_settings_add_what_they_say(name: str) -> None:
    for setting, _ in KEEPS[name].settings:
        value: Any = 0.9 if setting == "momentum" else True
        assert kept(name, {"lr": 0.1, setting: value}) == pytest.approx(keeps(name, {setting: value}), abs=0.01)


def test_names() -> None:
    assert keeps("torch.optim.adam.Adam", {"amsgrad": True}) == 3
    assert keeps("torch.optim.Adafactor", {}) is None
    assert keeps("Adam", {}) is None
