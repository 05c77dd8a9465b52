"""Gradient mode: TML201 to TML204."""

from __future__ import annotations

import contextlib

import torch
from torch.nn import functional

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import examples, labels, perceptron


def evaluation(bench: Bench) -> object:
    """An evaluation that counts right answers."""
    model = perceptron(bench).eval()
    right = 0
    for _ in bench.turns():
        with torch.no_grad() if bench.good else contextlib.nullcontext():
            right += int((model(examples(bench)).argmax(1) == labels(bench)).sum())
    return right


def statement_without_effect(bench: Bench) -> object:
    """`torch.no_grad()` as a statement of its own, where `with` was meant."""
    model = perceptron(bench).eval()
    right = 0
    for _ in bench.turns():
        if bench.good:
            with torch.no_grad():
                right += int((model(examples(bench)).argmax(1) == labels(bench)).sum())
        else:
            torch.no_grad()
            right += int((model(examples(bench)).argmax(1) == labels(bench)).sum())
    return right


def detached_teacher(bench: Bench) -> object:
    """Distillation: a teacher four times as deep, whose answers are only a target."""
    teacher, student = perceptron(bench, deeper=4), perceptron(bench)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
    for _ in bench.turns():
        batch = examples(bench)
        if bench.good:
            with torch.no_grad():
                target = teacher(batch).softmax(-1)
        else:
            target = teacher(batch).softmax(-1).detach()
        loss = functional.kl_div(student(batch).log_softmax(-1), target, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return optimizer


def teacher_in_graph(bench: Bench) -> object:
    """Distillation: a teacher four times as deep, which no optimizer trains, takes part in the loss with its graph."""
    teacher, student = perceptron(bench, deeper=4), perceptron(bench)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
    for _ in bench.turns():
        batch = examples(bench)
        with torch.no_grad() if bench.good else torch.enable_grad():
            target = teacher(batch).softmax(-1)
        loss = functional.kl_div(student(batch).log_softmax(-1), target, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return optimizer


def strict_evaluation(bench: Bench) -> object:
    """An evaluation of many small operations under `no_grad`, or in inference mode."""
    model = perceptron(bench).eval()
    right = 0
    for _ in bench.turns():
        with torch.inference_mode() if bench.good else torch.no_grad():
            right += int((model(examples(bench)).argmax(1) == labels(bench)).sum())
    return right
