"""Graphs that outlive their step: TML101 to TML109, TML111 to TML114, TML701."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import CLASSES, examples, labels, perceptron


def running_loss(bench: Bench) -> object:
    """A validation loss summed over the batches."""
    model = perceptron(bench)
    total = torch.zeros((), device=bench.device)
    for _ in bench.turns():
        loss = functional.cross_entropy(model(examples(bench)), labels(bench))
        total = total + (loss.detach() if bench.good else loss)
    return total


def running_loss_after_backward(bench: Bench) -> object:
    """A training loss summed over the steps, each after its backward."""
    model = perceptron(bench)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total: Any = 0.0
    for _ in bench.turns():
        loss = functional.cross_entropy(model(examples(bench)), labels(bench))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach() if bench.good else loss
    return total


def collected_outputs(bench: Bench) -> object:
    """Predictions collected over the batches."""
    model = perceptron(bench)
    predictions = []
    for _ in bench.turns():
        output = model(examples(bench))
        predictions.append(output.detach() if bench.good else output)
    return predictions


def output_on_attribute(bench: Bench) -> object:
    """A module that remembers its last features, to be looked at later."""

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = perceptron(bench)
            self.last: torch.Tensor | None = None

        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor = self.layers(batch)
            self.last = output.detach() if bench.good else output
            return output

    encoder = Encoder()
    for _ in bench.turns():
        best = encoder(examples(bench)).argmax(1)
        del best
    return encoder


def carried_state(bench: Bench) -> object:
    """A recurrent state handed from step to step, with `retain_graph` to keep backward from raising."""
    width = bench.size.width
    cell = nn.GRUCell(width, width).to(bench.device)
    head = nn.Linear(width, CLASSES).to(bench.device)
    hidden = torch.zeros(bench.size.batch, width, device=bench.device)
    for _ in bench.turns():
        hidden = cell(examples(bench), hidden.detach() if bench.good else hidden)
        functional.cross_entropy(head(hidden), labels(bench)).backward(retain_graph=not bench.good)
    return hidden


def retained_graph(bench: Bench) -> object:
    """A training step that retains a graph nobody differentiates again."""
    model = perceptron(bench)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = None
    for _ in bench.turns():
        loss = functional.cross_entropy(model(examples(bench)), labels(bench))
        optimizer.zero_grad()
        loss.backward(retain_graph=not bench.good)
        optimizer.step()
    return loss


def storing_hook(bench: Bench) -> object:
    """A forward hook that stores what a layer gives."""
    model = perceptron(bench)
    stored: list[torch.Tensor] = []

    def store(module: nn.Module, inputs: object, output: torch.Tensor) -> None:
        mean = output.mean()
        stored.append(mean.detach() if bench.good else mean)

    model[-1].register_forward_hook(store)
    for _ in bench.turns():
        model(examples(bench))
    return stored


def undetached_generator(bench: Bench) -> object:
    """The discriminator's step of an adversarial pair."""
    generator, discriminator = perceptron(bench), perceptron(bench)
    project = nn.Linear(CLASSES, bench.size.width).to(bench.device)
    optimizer = torch.optim.SGD(discriminator.parameters(), lr=0.01)
    for _ in bench.turns():
        forged = project(generator(examples(bench)))
        real = discriminator(examples(bench)).mean()
        judged = discriminator(forged.detach() if bench.good else forged).mean()
        optimizer.zero_grad()
        (judged - real).backward()
        optimizer.step()
    return optimizer


def deferred_backward(bench: Bench) -> object:
    """Four micro-batches for each step of the optimizer."""
    micro_batches = 4
    model = perceptron(bench)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in bench.turns():
        optimizer.zero_grad()
        total = torch.zeros((), device=bench.device)
        for _ in range(micro_batches):
            loss = functional.cross_entropy(model(examples(bench)), labels(bench)) / micro_batches
            if bench.good:
                loss.backward()
            else:
                total = total + loss
        if not bench.good:
            total.backward()
        optimizer.step()
    return optimizer


def kept_exception(bench: Bench) -> object:
    """A step that fails late, and whose failure is kept for a report at the end."""
    model = perceptron(bench)
    failures: list[object] = []

    def step() -> None:
        output = model(examples(bench))
        functional.cross_entropy(output, labels(bench)[:-1])  # the sizes do not fit: raises

    for _ in bench.turns():
        with contextlib.suppress(ValueError):
            try:
                step()
            except ValueError as error:
                failures.append(str(error) if bench.good else error)
    return failures


def step_outputs(bench: Bench) -> object:
    """A Lightning-like module that keeps what each training step gave until the epoch's end."""

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = perceptron(bench)
            self.outputs: list[torch.Tensor] = []

        def training_step(self, batch: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            scores = self.layers(batch)
            probabilities = scores.softmax(-1)
            self.outputs.append(probabilities.detach() if bench.good else probabilities)
            return functional.cross_entropy(scores, target)

    module = Classifier()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    for _ in bench.turns():
        loss = module.training_step(examples(bench), labels(bench))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return module


class _Gate(torch.autograd.Function):
    """An activation whose backward needs its output."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, on_context: bool) -> torch.Tensor:
        output = torch.sigmoid(x)
        ctx.on_context = on_context
        if on_context:
            ctx.output = output
        else:
            ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        output = ctx.output if ctx.on_context else ctx.saved_tensors[0]
        return grad * output * (1 - output), None


def output_on_context(bench: Bench) -> object:
    """A network with an activation of its own, in training."""
    width = bench.size.width
    model = nn.Linear(width, width).to(bench.device)
    for _ in bench.turns():
        output: Any = _Gate.apply(model(examples(bench)), not bench.good)
        output.square().mean().backward()
        del output
    return model


def gradients_with_graphs(bench: Bench) -> object:
    """The curvature at a new point in each step."""
    total = torch.zeros((), device=bench.device)
    for _ in bench.turns():
        point = examples(bench).requires_grad_()
        value = point.sin().sum()
        if bench.good:
            slope = torch.autograd.grad(value, point, create_graph=True)[0]
        else:
            value.backward(create_graph=True)
            assert point.grad is not None
            slope = point.grad
        total += torch.autograd.grad(slope.sum(), point)[0].sum()
    return total


def skipped_batches(bench: Bench) -> object:
    """A training that leaves every other batch out when its loss is known."""
    model = perceptron(bench)
    for turn in bench.turns():
        loss = functional.cross_entropy(model(examples(bench)), labels(bench))
        if turn % 2 == 0:
            if bench.good:
                del loss
            continue
        loss.backward()
    return model


def collected_views(bench: Bench) -> object:
    """The first of sixteen features of each example, collected over the batches."""
    width = bench.size.width
    model = nn.Linear(width, width).to(bench.device)
    kept = []
    with torch.no_grad():
        for _ in bench.turns():
            tokens = model(examples(bench)).view(bench.size.batch, 16, -1)
            kept.append(tokens[:, 0].clone() if bench.good else tokens[:, 0])
    return kept
