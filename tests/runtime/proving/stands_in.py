"""Small things that stand in for what fixtures are given or import: models, data, frameworks."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

WIDTH, CLASSES, BATCH, BATCHES = 8, 4, 6, 4


class Model(nn.Module):
    """Three layers under the names that fixtures hook; takes and ignores what some hand over beside the input."""

    def __init__(self, inputs: int = WIDTH, outputs: int = CLASSES, hidden: int = 16) -> None:
        super().__init__()
        self.encoder = nn.Linear(inputs, hidden)
        self.layer4 = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.Dropout(0.2))
        self.head = nn.Linear(hidden, outputs)

    def forward(self, *inputs: torch.Tensor, task: str = "") -> torch.Tensor:
        tensors = [part.float().reshape(len(part), -1) for part in inputs]
        return self.head(torch.relu(self.layer4(self.encoder(torch.cat(tensors, 1)))))


class Heads(nn.Module):
    """Several outputs from one body."""

    def __init__(self, *outputs: int, inputs: int = WIDTH) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Dropout(0.2))
        self.heads = nn.ModuleList(nn.Linear(16, count) for count in outputs)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        body = self.body(x)
        return tuple(head(body) for head in self.heads)


class Calling(nn.Module):
    """A model whose outputs are put in another shape by a function."""

    def __init__(self, model: nn.Module, function: Any) -> None:
        super().__init__()
        self.model, self.function = model, function

    def forward(self, *inputs: torch.Tensor, **named: torch.Tensor) -> Any:
        return self.function(self.model(*inputs, *named.values()))


class WithLoss(Model):
    """Answers with an object that has the loss, as models of transformers do."""

    def forward(self, *inputs: torch.Tensor, task: str = "", **named: torch.Tensor) -> Any:
        return types.SimpleNamespace(loss=super().forward(*inputs, *named.values()).square().mean())


class Loss(Model):
    """Answers with its loss."""

    def forward(self, *inputs: torch.Tensor, task: str = "") -> torch.Tensor:
        return super().forward(*inputs).square().mean()


class Loader(list[Any]):
    """Batches, with the data set that a loader has."""

    @property
    def dataset(self) -> range:
        return range(BATCH * len(self))


class Items(Dataset[Any]):
    """A data set for `DataLoader`: the same items however often they are asked for."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class LightningModule(nn.Module):
    """What a step needs of Lightning's module."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: dict[str, Any] = {}
        self.optimizer: torch.optim.Optimizer | None = None

    def log(self, name: str, value: Any) -> None:
        self.logged[name] = value.clone()

    def optimizers(self) -> torch.optim.Optimizer:
        self.optimizer = self.optimizer or torch.optim.SGD(self.parameters(), lr=0.1)
        return self.optimizer

    def manual_backward(self, loss: torch.Tensor) -> None:
        loss.backward()


class RankCorrelation(nn.Module):
    """A metric that keeps what it is given, as torchmetrics' `SpearmanCorrCoef` does."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[torch.Tensor, torch.Tensor]] = []

    def forward(self, predicted: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        self.kept.append((predicted, target))
        ranks = [one.flatten().argsort().argsort().float() for one in (predicted, target)]
        return torch.corrcoef(torch.stack(ranks))[0, 1]


def module(name: str, **contents: Any) -> types.ModuleType:
    """A module that can be imported."""
    made = types.ModuleType(name)
    vars(made).update(contents)
    return made


def passing(items: Iterable[Any], **_: Any) -> Iterable[Any]:
    """`tqdm`."""
    return items
