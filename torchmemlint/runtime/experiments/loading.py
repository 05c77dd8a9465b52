"""Data loading: TML401 to TML404, about time, TML405 to TML407, and TML110."""

from __future__ import annotations

from multiprocessing import get_all_start_methods

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, get_worker_info

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import CLASSES, perceptron
from torchmemlint.runtime.host import private_bytes

WORKERS = 2
MANY = 16


class Prepared(Dataset[tuple[torch.Tensor, int]]):
    """Examples that take some work each, as decoding and augmenting an image does."""

    def __init__(self, bench: Bench, batches: int) -> None:
        self.length = bench.size.batch * batches
        self.width = bench.size.width

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        raw = torch.full((self.width, self.width), float(index))
        for _ in range(4):
            raw = raw.sin().cumsum(0)
        return raw[0], index % CLASSES


class Placed(Prepared):
    """The same, with the features on a device already."""

    def __init__(self, bench: Bench, batches: int, device: torch.device) -> None:
        super().__init__(bench, batches)
        self.device = device

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        features, label = super().__getitem__(index)
        return features.to(self.device), label


class Listed(Dataset[tuple[int, int]]):
    """Examples that a listing describes: as a dict for each, or packed into tensors and one long text."""

    def __init__(self, bench: Bench, count: int) -> None:
        rows = [(f"train/speaker{n % 100:03d}/clip{n:07d}.wav", n * 16_000, n % 5) for n in range(count)]
        self.count = count
        self.samples: list[dict[str, str | int]] = []
        if bench.good:
            self.width = len(rows[0][0])
            self.text = "".join(path for path, _, _ in rows)
            self.numbers = torch.tensor([row[1:] for row in rows])
        else:
            self.samples = [{"path": path, "offset": offset, "label": label} for path, offset, label in rows]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[int, int]:
        if self.samples:
            sample = self.samples[index]
            return len(str(sample["path"])), int(sample["offset"])
        path = self.text[index * self.width : (index + 1) * self.width]
        return len(path), int(self.numbers[index, 0])


class Remembered(Dataset[tuple[int, int]]):
    """Examples that a dict keeps from the first time on, or that are made each time."""

    def __init__(self, bench: Bench, count: int) -> None:
        self.count = count
        self.width = bench.size.width
        self.keeps = not bench.good
        self.kept: dict[int, torch.Tensor] = {}

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[int, int]:
        features = self.kept.get(index)
        if features is None:
            features = torch.full((self.width,), float(index))
        if self.keeps:
            self.kept[index] = features
        return int(features[0]), len(features)


def _with_worker(samples: list[tuple[int, int]]) -> tuple[torch.Tensor, int, int | None]:
    """A batch, with the worker that made it and the memory that this one has to itself."""
    info = get_worker_info()
    return torch.tensor(samples), info.id if info is not None else -1, private_bytes()


def _train(bench: Bench, loader: DataLoader[tuple[torch.Tensor, int]], model: nn.Module, *, waits: bool = True) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(loader)
    for _ in bench.turns(len(loader)):
        batch, target = next(batches)
        batch, target = batch.to(bench.device, non_blocking=not waits), target.to(bench.device, non_blocking=not waits)
        loss = functional.cross_entropy(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def without_workers(bench: Bench) -> object:
    """An epoch whose examples take some work to prepare."""
    model = perceptron(bench)
    workers = WORKERS if bench.good else 0
    _train(
        bench, DataLoader(Prepared(bench, bench.size.steps), batch_size=bench.size.batch, num_workers=workers), model
    )
    return model


def unpinned(bench: Bench) -> object:
    """Batches copied to the device from pageable or from pinned memory."""
    model = perceptron(bench)
    pinned = bench.good and bench.device.type == "cuda"
    _train(bench, DataLoader(Prepared(bench, bench.size.steps), batch_size=bench.size.batch, pin_memory=pinned), model)
    return model


def blocking_transfer(bench: Bench) -> object:
    """Pinned batches copied while the program waits, or beside the computation."""
    model = perceptron(bench)
    pinned = bench.device.type == "cuda"
    loader = DataLoader(Prepared(bench, bench.size.steps), batch_size=bench.size.batch, pin_memory=pinned)
    _train(bench, loader, model, waits=not bench.good)
    return model


def respawned_workers(bench: Bench) -> object:
    """Short epochs, with workers started for each or kept."""
    model = perceptron(bench)
    data = Prepared(bench, batches=WORKERS)
    loader = DataLoader(data, batch_size=bench.size.batch, num_workers=WORKERS, persistent_workers=bench.good)
    for _ in bench.turns():
        for batch, _target in loader:
            model(batch.to(bench.device)).mean().backward()
    return model


def samples_on_device(bench: Bench) -> object:
    """Samples put on the device one by one, where the batch is made of them; or the batch in one copy."""
    where = torch.device("cpu") if bench.good else bench.device
    loader = DataLoader(Placed(bench, bench.size.steps, where), batch_size=bench.size.batch)
    batches = iter(loader)
    largest = torch.zeros((), device=bench.device)
    for _ in bench.turns(len(loader)):
        features, _target = next(batches)
        largest = torch.maximum(largest, features.to(bench.device).amax())
    return largest


def python_objects(bench: Bench) -> object:
    """An epoch over many small examples, in workers that are forked from the process that has listed them."""
    return _epoch_in_workers(bench, Listed(bench, bench.size.batch * bench.size.steps), WORKERS)


def remembered_samples(bench: Bench) -> object:
    """An epoch in workers that keep all samples they have made, or none."""
    return _epoch_in_workers(bench, Remembered(bench, bench.size.batch * bench.size.steps), WORKERS)


def many_workers(bench: Bench) -> object:
    """An epoch over few examples, in few workers or in many."""
    return _epoch_in_workers(bench, Listed(bench, bench.size.batch * bench.size.steps), WORKERS if bench.good else MANY)


def _epoch_in_workers(bench: Bench, data: Dataset[tuple[int, int]], workers: int) -> object:
    """An epoch, with the memory that the workers have to themselves in the end."""
    loader = DataLoader(
        data,
        batch_size=bench.size.batch,
        num_workers=workers,
        collate_fn=_with_worker,
        multiprocessing_context="fork" if "fork" in get_all_start_methods() else None,
    )
    own: dict[int, int] = {}
    batches = iter(loader)
    for _ in bench.turns(len(loader)):
        _batch, worker, held = next(batches)
        if held is not None:
            own[worker] = held
    bench.worker_bytes = sum(own.values()) if own else None
    return data
