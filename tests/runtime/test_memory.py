"""`track_memory` on programs whose bytes can be worked out by hand (float32: 4 bytes)."""

from __future__ import annotations

import inspect

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from torchmemlint.runtime import MemoryUse, track_memory  # noqa: E402
from torchmemlint.runtime.kinds import Kind  # noqa: E402
from torchmemlint.runtime.memory import Moment  # noqa: E402


def line_of(memory: MemoryUse, at: str = "peak") -> dict[str, int]:
    """Bytes by the text of the line that made them."""
    source = inspect.getsourcelines(inspect.getmodule(line_of))[0]  # type: ignore[arg-type]
    return {source[use.site.line - 1].strip(): use.nbytes for use in memory.by_line(at)}


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 8) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(16, 64)).square().mean().backward()
        optimizer.step()


def test_a_tensor_counts_until_it_goes() -> None:
    with track_memory("cpu") as memory:
        first = torch.ones(256)
        assert memory.live == 1024
        second = first[:128]  # a view has no storage of its own
        assert memory.live == 1024
        del first
        assert memory.live == 1024
        del second
        assert memory.live == 0
    assert memory.peak == 1024
    assert memory.device == "cpu"
    assert memory.peak_reserved is None


def test_a_resized_storage_counts_anew() -> None:
    with track_memory("cpu") as memory:
        tensor = torch.ones(256)
        tensor.resize_(1024)
        assert memory.live == 4096
        tensor.untyped_storage().resize_(0)
        tensor.size()
        tensor.data = torch.ones(2)
        assert memory.live == 8


def test_kinds_of_a_training_step() -> None:
    model = nn.Linear(64, 32, bias=False)
    optimizer = torch.optim.Adam(model.parameters())
    with track_memory("cpu") as memory:
        train(model, optimizer)
    kinds = memory.by_kind("end")
    weights = 64 * 32 * 4
    assert kinds[Kind.PARAMETER] == weights
    assert kinds[Kind.GRADIENT] == weights
    assert kinds[Kind.OPTIMIZER_STATE] == 2 * weights + 4  # two averages, and a count of steps
    assert memory.steps == 8
    assert memory.growth_per_step == 0.0


def test_what_a_graph_keeps_is_saved() -> None:
    weight = nn.Parameter(torch.ones(64, 64))
    with track_memory("cpu") as memory:
        hidden = (torch.ones(16, 64) @ weight).sigmoid()
        loss = hidden.sum()
        del hidden
        kinds = memory.by_kind("end")
    # The product's input and the sigmoid's output are kept for backward; the loss itself is not.
    assert kinds[Kind.SAVED] == 2 * 16 * 64 * 4
    assert loss.grad_fn is not None


def test_backward_belongs_to_the_forward_line() -> None:
    first, second = nn.Linear(64, 64, bias=False), nn.Linear(64, 512, bias=False)
    with track_memory("cpu") as memory:
        hidden = first(torch.ones(16, 64))
        wide = second(hidden)
        wide.sum().backward()
    lines = line_of(memory, "end")
    assert lines["wide = second(hidden)"] >= 64 * 512 * 4  # the gradient of `second.weight`
    assert lines["hidden = first(torch.ones(16, 64))"] >= 64 * 64 * 4


def test_growth_of_a_kept_graph_is_exact() -> None:
    model = nn.Linear(64, 64)
    kept = []
    with track_memory("cpu") as memory:
        for _ in range(10):
            kept.append(model(torch.randn(4, 64)).relu())
            memory.step()
    # Kept from step to step: the input (saved by the linear layer) and the ReLU's output.
    assert memory.growth_per_step == 2 * 4 * 64 * 4
    assert memory.growth.fit == pytest.approx(1.0)


def test_a_cleared_list_does_not_grow() -> None:
    model = nn.Linear(64, 64)
    kept = []
    with track_memory("cpu") as memory:
        for _ in range(10):
            kept.append(model(torch.randn(4, 64)).relu())
            kept.clear()
            memory.step()
    assert memory.growth_per_step == 0.0


def test_loaders_tell_steps_and_batches() -> None:
    loader = DataLoader(TensorDataset(torch.randn(32, 64)), batch_size=4)
    with track_memory("cpu") as memory, torch.no_grad():
        for (batch,) in loader:
            batch.sum()
    assert memory.steps == 8
    batches = [index for index in range(len(memory.ledger)) if memory.ledger.nbytes(index) == 4 * 64 * 4]
    assert batches
    assert {memory.ledger.kind(index) for index in batches} == {Kind.INPUT}


def test_checkpointing_is_not_disturbed() -> None:
    calls = []

    def block(values: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return torch.tanh(values).exp()

    values = torch.randn(16, 64, requires_grad=True)
    with track_memory("cpu") as memory:
        result = checkpoint(block, values, use_reentrant=False).sum()
        memory.by_kind()
        result.backward()
    assert len(calls) == 2  # forward, and once more for backward: looking at the graph computes nothing
    values.grad = None


@pytest.mark.skipif(not hasattr(torch.utils, "swap_tensors"), reason="torch has no swap_tensors yet")
def test_a_watched_parameter_can_be_swapped() -> None:
    layer = nn.Linear(64, 64, bias=False)
    with track_memory("cpu"):
        with torch.no_grad():
            layer(torch.randn(16, 64))
        torch.utils.swap_tensors(layer.weight, nn.Parameter(torch.zeros(64, 64)))
    assert not layer.weight.any()


def test_gradients_without_an_optimizer_are_gradients() -> None:
    layer = nn.Linear(64, 64, bias=False)
    with track_memory("cpu") as memory:
        layer(torch.randn(16, 64)).sum().backward()
    assert memory.by_kind("end")[Kind.GRADIENT] == 64 * 64 * 4


def test_results_are_the_same_as_without() -> None:
    def run() -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(), nn.ReLU(), nn.Linear(64, 1))
        train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
        return [parameter.detach().clone() for parameter in model.parameters()]

    alone = run()
    with track_memory("cpu"):
        watched = run()
    assert all(torch.equal(one, other) for one, other in zip(alone, watched, strict=True))


def test_everything_is_put_back() -> None:
    before = torch.autograd.backward, torch.autograd.grad, DataLoader.__iter__
    hooks = torch.autograd.graph.saved_tensors_hooks.__enter__

    def fail() -> None:
        assert torch.autograd.backward is not before[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), track_memory("cpu"):
        fail()
    assert (torch.autograd.backward, torch.autograd.grad, DataLoader.__iter__) == before
    assert torch.autograd.graph.saved_tensors_hooks.__enter__ is hooks


def test_timeline_ends_with_what_lives() -> None:
    with track_memory("cpu") as memory:
        kept = torch.ones(100)
        torch.ones(1000)
    assert [moment.nbytes for moment in memory.timeline] == [400, 4400, 400]
    assert kept.numel() == 100


def test_the_timeline_of_a_long_run_is_short_and_keeps_its_peak() -> None:
    with track_memory("cpu") as memory:
        for turn in range(1000):
            torch.ones(2000 if turn == 777 else 1000)
            memory.step()
    timeline = memory.timeline
    assert len(timeline) == 400  # of 2000 events, the highest of every five
    assert max(timeline, key=lambda moment: moment.nbytes) == Moment(777 * 2 + 1, 777, {Kind.TEMPORARY: 8000})


def test_what_has_no_bytes_is_on_no_accelerator() -> None:
    with track_memory("cpu") as memory:
        torch.ones(10_000, device="meta")
        torch.ones(100)
    assert (memory.device, memory.peak) == ("cpu", 400)


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ValueError, match="rocm"), track_memory("rocm"):
        pass


def test_graphs_from_before_are_left_as_they_are() -> None:
    layer = torch.nn.Linear(64, 64)
    earlier = checkpoint(lambda x: layer(x).relu().sum(), torch.ones(8, 64, requires_grad=True), use_reentrant=False)
    with track_memory() as m:
        x = torch.ones(100)
    assert (m.peak, m.live) == (400, 400)
    assert earlier.requires_grad
    del x
