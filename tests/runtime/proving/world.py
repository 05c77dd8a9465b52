"""What fixtures are given: arguments by the names that people use for them, made anew for each run from its seed."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.runtime.proving.stands_in import BATCH, BATCHES, CLASSES, WIDTH, Loader, Model


class World:
    """The arguments of one run. A value asked for twice is the same object: two functions train one model."""

    def __init__(self, text: str, seed: int, device: str, folder: Path, given: dict[str, Given]) -> None:
        self.seed, self.device, self.folder = seed, device, folder
        self.made: dict[str, Any] = {}
        self.saved: list[Any] = []  # what a fixture hands to the outside
        self._given = given
        self._target = _target(text)

    def feed(self, name: str, parameter: Parameter | None = None) -> Any:
        """The value for a parameter; its own default, if it has one, where the fixture is not given another."""
        if name not in self.made:
            factory = self._given.get(name)
            if factory is None:
                if parameter is not None and parameter.default is not Parameter.empty and name != "device":
                    return parameter.default
                factory = CONVENTIONS.get(name)
            if factory is None:
                raise LookupError(f"nothing is known to give for `{name}`")
            self.made[name] = self.seeded(name, factory)
        return self.made[name]

    def seeded(self, name: str, factory: Given) -> Any:
        """Something made from random numbers of its own, which leaves the program's alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed * 1_000_003 + zlib.crc32(name.encode()))
            made = factory(self)
        return made.to(self.device) if isinstance(made, nn.Module) else made

    def modules(self) -> list[nn.Module]:
        """The networks given so far."""
        return [value for value in self.made.values() if isinstance(value, nn.Module)]

    def pair(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets, as the fixture's loss wants them."""
        return torch.rand(BATCH, WIDTH), self._target()


Given = Callable[[World], Any]


def _target(text: str) -> Callable[[], torch.Tensor]:
    if re.search(r"(?<!binary_)cross_entropy|CrossEntropyLoss|argmax", text):
        return lambda: torch.randint(0, CLASSES, (BATCH,))
    if "BCE" in text or "binary_cross_entropy" in text:
        return lambda: torch.rand(BATCH, CLASSES)
    return lambda: torch.randn(BATCH, CLASSES)


def batches(make: Given) -> Given:
    """A loader whose batches are made so."""
    return lambda world: Loader(make(world) for _ in range(BATCHES))


def model(*sizes: int) -> Given:
    """A network with so many inputs and outputs."""
    return lambda world: Model(*sizes)


def constant(value: Any) -> Given:
    """Always this."""
    return lambda world: value


def _optimizer(world: World) -> torch.optim.Optimizer:
    parameters = [one for network in world.modules() for one in network.parameters()]
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def _pairs(world: World) -> Any:
    return batches(World.pair)(world)


_MODELS = "model net student teacher online momentum_encoder q q_local q_target policy_net target_net encoder critic"
CONVENTIONS: dict[str, Given] = {
    **dict.fromkeys(_MODELS.split(), lambda world: Model()),
    **dict.fromkeys("loader batches train_loader val_loader".split(), _pairs),
    **dict.fromkeys("optimizer opt".split(), _optimizer),
    "device": lambda world: torch.device(world.device),
    "epochs": constant(2),
    "x": lambda world: world.pair()[0],
    "y": lambda world: world.pair()[1],
    "batch": World.pair,
    "lr": constant(0.05),
    "latent": constant(8),
    "vocab": constant(11),
    "dim": constant(WIDTH),
    "width": constant(WIDTH),
    "depth": constant(2),
    "max_steps": constant(6),
    "path": lambda world: world.folder / "checkpoint.pt",
}
LATER = ("optimizer", "opt")  # made after the networks they are for
