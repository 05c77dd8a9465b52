"""What counts as a step in a program that has neither an optimizer nor a loader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from torchmemlint.runtime.launch import launch, order_for, workspace  # noqa: E402
from torchmemlint.runtime.loops import LoopWatch  # noqa: E402
from torchmemlint.runtime.order import Program  # noqa: E402
from torchmemlint.runtime.results import End  # noqa: E402
from torchmemlint.runtime.steps import Steps  # noqa: E402

PROGRAM = """\
import torch
from torch import nn

cell = nn.RNNCell(8, 8)
hidden = torch.zeros(1, 8)
for moment in range(40):  # over time, with a graph: whole
    hidden = cell(torch.ones(1, 8), hidden)
print("moments", moment + 1)

kept = []
for step in range(1000):  # a training that updates by hand
    loss = cell(torch.ones(1, 8), torch.zeros(1, 8)).sum()
    loss.backward()
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter -= 0.01 * parameter.grad
            parameter.grad = None
    kept.append(torch.ones(256))
print("steps", step + 1)

with torch.no_grad():
    for prompt in range(1000):  # a generation
        hidden = torch.zeros(1, 8)
        for token in range(20):
            hidden = cell(torch.ones(1, 8), hidden)
    print("prompts", prompt + 1, "tokens", token + 1)
"""


def test_a_program_without_optimizers_and_loaders_is_kept_short(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    with workspace() as space:
        order = order_for(Program("train.py", directory=str(tmp_path)), space, backend="cpu", steps=8)
        result = launch(order)
        out = (Path(order.folder) / "stdout").read_text()
    # The last number is that of the turn at whose head the loop was left.
    assert out.splitlines() == ["moments 40", "steps 9", "prompts 9 tokens 20"]
    assert (result.end, result.series.partition(" ")[0], result.steps) == (End.FINISHED, "backward", 8)
    assert result.growth_per_step == 1024.0
    assert {loop.line: (loop.turns, loop.cuts) for loop in result.loops} == {
        6: (40, 0),
        11: (8, 1),
        15: (32, 0),
        22: (8, 1),
        24: (160, 0),
    }


def steps_of(watch: LoopWatch) -> Steps:
    steps = Steps()
    steps.on_root_backward.append(lambda: steps.ended("backward", watch))

    def called() -> None:
        if watch.calls_in_a_new_turn():
            steps.ended("call", watch)

    steps.on_call.append(called)
    steps.on_step.append(watch.step)
    return steps


def train(watch: LoopWatch, model: nn.Module, turns: int = 30) -> int:
    entry = watch.enter("train.py", 1)
    done = 0
    for _ in range(turns):
        if watch.turn(entry):
            break
        model(torch.ones(2, 3)).sum().backward()
        done += 1
    watch.leave(entry)
    return done


@pytest.mark.parametrize(
    ("make", "done"),
    [
        (lambda model: None, 8),
        (lambda model: torch.optim.SGD(model.parameters(), lr=0.1), 30),  # gradients that add up before a step
        (lambda model: DataLoader([1, 2]), 30),
    ],
    ids=["neither", "optimizer", "loader"],
)
def test_backwards_stand_in_until_there_is_something_better(make: Any, done: int) -> None:
    watch = LoopWatch(8, 600.0, lambda: 0)
    before = torch.optim.Optimizer.__init__, DataLoader.__init__, torch.autograd.backward
    hooks = dict(torch.nn.modules.module._global_forward_hooks)
    model = nn.Linear(3, 3)
    with steps_of(watch):
        held = make(model)
        assert train(watch, model) == done
    del held
    assert before == (torch.optim.Optimizer.__init__, DataLoader.__init__, torch.autograd.backward)
    assert torch.nn.modules.module._global_forward_hooks == hooks


def test_calls_count_once_for_each_turn_of_the_outermost_loop_and_without_a_graph_only() -> None:
    watch = LoopWatch(8, 600.0, lambda: 0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    with steps_of(watch):
        outer = watch.enter("run.py", 1)
        for _ in range(2):
            watch.turn(outer)
            model(torch.ones(1, 3))
            assert not watch.counts
            inner = watch.enter("run.py", 2)
            with torch.no_grad():
                for _ in range(5):
                    assert not watch.turn(inner)
                    model(torch.ones(1, 3))
            watch.leave(inner)
            watch.counts, counted = type(watch.counts)(), watch.counts
            assert list(counted.values()) == [1]
        assert outer.had == 2
        with pytest.raises(RuntimeError), torch.no_grad():
            model(torch.ones(1, 4))
        with torch.no_grad():  # what failed is not mistaken for a module around this one
            watch.turn(outer)
            model(torch.ones(1, 3))
        assert outer.had == 3
