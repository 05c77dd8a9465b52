"""What holds networks and tensors beside graphs: TML801 to TML807."""

from __future__ import annotations

import functools

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import examples, perceptron


def networks_in_cycles(bench: Bench) -> object:
    """A new network for each trial, with a method in a table of its own: the collector runs when it happens to."""

    class Trial(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = perceptron(bench)
            self.ways = {} if bench.good else {"train": self.train_once}

        def train_once(self) -> None:
            self.body(examples(bench)).sum().backward()

    for _ in bench.turns():
        trial = Trial()
        trial.train_once()
        del trial
    return None


def hooks_of_each_image(bench: Bench) -> object:
    """An extractor for each batch, whose hook stays on the network, and in it the activation that it saw last."""
    model = perceptron(bench)

    def extractor() -> RemovableHandle:
        seen: dict[str, torch.Tensor] = {}

        def save(module: nn.Module, inputs: object, output: torch.Tensor) -> None:
            seen["last"] = output.clone()

        return model[0].register_forward_hook(save)

    with torch.no_grad():
        for _ in bench.turns():
            handle = extractor()
            model(examples(bench))
            if bench.good:
                handle.remove()
    return model


def pushed_without_backward(bench: Bench) -> object:
    """What a forward hook pushes, and only a backward hook pops, in passes that have no backward."""
    model = perceptron(bench)
    stack: list[torch.Tensor] = []

    def push(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if torch.is_grad_enabled() or not bench.good:
            stack.append(output)

    def pop(module: nn.Module, given: object, gradients: object) -> None:
        stack.pop()

    model[0].register_forward_hook(push)
    model[0].register_full_backward_hook(pop)
    model(examples(bench)).sum().backward()
    with torch.no_grad():
        for _ in bench.turns():
            model(examples(bench))
    return stack


def networks_of_all_folds(bench: Bench) -> object:
    """A new network and optimizer for each fold, kept with its result."""
    results: list[object] = []
    for _ in bench.turns():
        network = perceptron(bench)
        optimizer = torch.optim.Adam(network.parameters())
        loss = network(examples(bench)).square().mean()
        loss.backward()
        optimizer.step()
        results.append(loss.item() if bench.good else (loss.item(), network, optimizer))
    return results


def cached_networks(bench: Bench) -> object:
    """A new network for each fold, and a function that is given each of them."""

    def names(network: nn.Module) -> list[str]:
        return [name for name, _ in network.named_parameters()]

    asked = names if bench.good else functools.lru_cache(maxsize=None)(names)
    for _ in bench.turns():
        network = perceptron(bench)
        network(examples(bench)).sum().backward()
        asked(network)
    return asked


def predictions_of_epochs(bench: Bench) -> object:
    """A metric that keeps what it is given, over epochs of two batches."""
    model = perceptron(bench)
    kept: list[torch.Tensor] = []
    with torch.no_grad():
        for turn in bench.turns():
            kept.append(model(examples(bench)).repeat(1, 32))
            if bench.good and turn % 2 == 1:
                kept.clear()
    return kept
