"""Programs written for CUDA on a machine without it: devices, errors, `torch.cuda`, and bytes to the last one."""

from __future__ import annotations

import copy
import gc
import io
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from torchmemlint.runtime import internals, track_memory  # noqa: E402
from torchmemlint.runtime.backends import choose  # noqa: E402
from torchmemlint.runtime.simulated import cards, execution  # noqa: E402
from torchmemlint.runtime.simulated.backend import Simulated  # noqa: E402

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="simulates what is there")
MIB = 1 << 20


@pytest.fixture
def cuda() -> Iterator[Simulated]:
    """A simulated A100 for the test's body."""
    backend = Simulated(workspace=False)
    with backend.running():
        yield backend


def published_sequence(workspace: bool) -> tuple[list[int], Simulated]:
    """Two linear layers, forward and backward: the changes of `memory_allocated` after each line."""
    backend = Simulated(workspace=workspace)
    changes: list[int] = []
    last = 0

    def note() -> None:
        nonlocal last
        now = torch.cuda.memory_allocated()
        changes.append(now - last)
        last = now

    with backend.running():
        first = nn.Linear(1024, 1024, bias=False).to("cuda")
        note()
        second = nn.Linear(1024, 1, bias=False).to("cuda")
        note()
        inputs = torch.full((1024, 1024), 1.0, device="cuda")
        note()
        for _ in range(2):
            loss = sum(second(first(inputs)))
            note()
            loss.backward()  # type: ignore[union-attr]
            note()
        for _ in range(3):
            sum(second(first(inputs))).backward()  # type: ignore[union-attr]
    return changes, backend


def test_the_published_sequence_to_the_byte() -> None:
    changes, backend = published_sequence(workspace=False)
    assert changes == [4194304, 4096, 4194304, 4194304 + 512, 4096, 4194304, -4194304]
    assert backend.peak_reserved("cuda:0") == 22 * MIB


def test_the_published_sequence_with_the_workspaces_of_torch_2() -> None:
    changes, backend = published_sequence(workspace=True)
    assert changes == [4194304, 4096, 4194304, 4194304 + 512 + 8519680, 4096 + 8519680, 4194304, -4194304]
    assert backend.peak_reserved("cuda:0") == 62 * MIB


@pytest.mark.parametrize(
    ("release", "kept", "peak"), [((2, 8), 0, MIB), ((2, 9), MIB, MIB), ((2, 11), MIB, MIB), ((2, 12), 0, 0)]
)
def test_what_cublaslt_takes_where_a_bias_is_added(
    monkeypatch: pytest.MonkeyPatch, release: tuple[int, int], kept: int, peak: int
) -> None:
    """For the operation, for good, or nothing of its own: pytorch/pytorch#73439, #156495, #175879."""
    monkeypatch.setattr(internals, "RELEASE", release)
    with Simulated("h200").running():
        layer, plain = nn.Linear(64, 64).to("cuda"), nn.Linear(64, 64, bias=False).to("cuda")
        one_row, one_column = torch.ones(1, 64, device="cuda"), nn.Linear(64, 1).to("cuda")
        before = torch.cuda.memory_allocated()
        outputs = [plain(one_row), one_column(one_row)]  # neither is its
        workspace = 32 * MIB + 2 * 512
        assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated() == before + workspace
        outputs.append(layer(one_row))
        assert torch.cuda.memory_allocated() == before + workspace + 512 + kept
        assert torch.cuda.max_memory_allocated() == before + workspace + 512 + peak
        layer(one_row)
        assert torch.cuda.memory_allocated() == before + workspace + 512 + kept


def test_each_thread_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backward adds a bias where it computes a layer again."""
    monkeypatch.setattr(internals, "RELEASE", (2, 11))
    with Simulated("h200").running():
        layer = nn.Sequential(nn.Linear(64, 64), nn.Tanh()).to("cuda")
        inputs = torch.ones(8, 64, device="cuda", requires_grad=True)
        layer(inputs).sum().backward()
        layer.zero_grad()
        inputs.grad = None
        before = torch.cuda.memory_allocated()
        again: Any = checkpoint(layer, inputs, use_reentrant=False)
        again.sum().backward()
        del again
        layer.zero_grad()
        inputs.grad = None
        assert torch.cuda.memory_allocated() - before == MIB


def test_the_backward_of_softmax_takes_a_tensor_for_itself(cuda: Simulated) -> None:
    """`grad * output`, in `softmax_backward_cuda_out` of aten/src/ATen/native/cuda/SoftMax.cu."""
    values = torch.ones(MIB, device="cuda", requires_grad=True)
    given = torch.ones(MIB, device="cuda")
    values.softmax(0).backward(given)
    assert torch.cuda.max_memory_allocated() == 5 * 4 * MIB  # input, output, two gradients, the product
    assert torch.cuda.memory_allocated() == 3 * 4 * MIB


def test_everything_is_put_back() -> None:
    def state() -> list[object]:
        owners = [
            torch,
            torch.cuda,
            torch.cuda.memory,
            torch.Tensor,
            nn.Module,
            nn.functional,
            torch.autograd,
            torch._C,
        ]
        return [{name: id(value) for name, value in vars(owner).items()} for owner in owners]

    before = state()
    with track_memory("simulated"):
        torch.set_default_device("cuda")
        assert torch.ones(1).is_cuda
        assert torch.cuda.is_available()
    assert not torch.cuda.is_available()
    assert torch.ones(1).device.type == "cpu"
    after = state()
    torch.set_default_device(None)
    changed = [
        name
        for first, second in zip(before, after, strict=True)
        for name in {*first, *second}  # type: ignore[misc]
        if first.get(name) != second.get(name)  # type: ignore[attr-defined]
    ]
    assert [name for name in changed if name != "_GLOBAL_DEVICE_CONTEXT"] == []


def test_devices_as_a_program_sees_them(cuda: Simulated) -> None:
    gpu = torch.device("cuda")
    host = torch.ones(3, 4)
    tensors = [
        host.to("cuda"),
        host.to(gpu),
        host.to("cuda:0", torch.float64),
        host.to(device=0, non_blocking=True),
        host.to(torch.device(0)),
        nn.Linear(2, 2).to(0).weight,
        nn.Linear(2, 2).to(device=0).weight,
        host.cuda(),
        torch.ones(3, device="cuda"),
        torch.tensor([1, 2], device=gpu),
        torch.arange(4, device="cuda"),
        torch.zeros_like(host, device="cuda"),
        torch.as_tensor(host, device="cuda"),
        torch.as_tensor([1.0], device="cuda"),
        torch.eye(2, device="cuda").new_zeros(3),
        torch.eye(2, device="cuda").new_tensor([1, 2]),
        host.type("torch.cuda.FloatTensor"),
        host.to(torch.ones(1, device="cuda")),
        torch.cuda.FloatTensor([1.0, 2.0]),
        torch.empty(2, device="cuda").uniform_(),
        copy.deepcopy(host.cuda()),
        nn.Parameter(torch.ones(2, device="cuda")),
        torch.rand(3, generator=torch.Generator(device="cuda").manual_seed(1), device="cuda"),
        torch.nn.functional.one_hot(torch.arange(3, device="cuda")),
        torch.stack([host.cuda()[0], host.cuda()[1]]),
    ]
    for tensor in tensors:
        assert tensor.is_cuda
        assert not tensor.is_cpu
        assert tensor.device == torch.device("cuda", 0)
        assert tensor.get_device() == 0
        assert not tensor.cpu().is_cuda
        assert tensor.to("cpu").get_device() == -1
    assert not host.is_cuda
    assert not host.to(torch.float64).is_cuda
    assert not torch.tensor([1]).is_cuda
    gpu_tensor = host.cuda()
    assert gpu_tensor.to("cuda") is gpu_tensor
    assert gpu_tensor.to(torch.float32) is gpu_tensor
    assert gpu_tensor.type() == "torch.cuda.FloatTensor"
    assert isinstance(gpu_tensor, torch.cuda.FloatTensor)
    assert "device='cuda:0'" in repr(gpu_tensor)
    assert "device='cuda:0'" in repr(gpu_tensor.sum())
    assert gpu_tensor.sum().item() == 12
    assert gpu_tensor.tolist() == host.tolist()


def test_default_devices_and_contexts(cuda: Simulated) -> None:
    with torch.device("cuda"):
        model = nn.Linear(2, 2)
        assert torch.ones(2).is_cuda
    assert model.weight.is_cuda
    assert not torch.ones(2).is_cuda
    torch.set_default_device("cuda")
    assert torch.ones(2).is_cuda
    assert nn.Linear(2, 2).weight.is_cuda
    assert not torch.ones(2, device="cpu").is_cuda
    torch.set_default_device(None)
    assert not torch.ones(2).is_cuda


def test_modules_move_with_their_parameters(cuda: Simulated) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    weight = model[0].weight
    model.to("cuda")
    assert model[0].weight is weight
    assert weight.is_cuda
    assert model[1].running_mean.is_cuda
    model(torch.ones(2, 4, device="cuda")).sum().backward()
    assert weight.grad is not None
    assert weight.grad.is_cuda
    optimizer.step()
    assert optimizer.state[weight]["exp_avg"].is_cuda
    assert not optimizer.state[weight]["step"].is_cuda
    assert not model.cpu()[0].weight.is_cuda
    assert cuda.allocator.allocated > 0


def test_devices_do_not_mix(cuda: Simulated) -> None:
    host, gpu = torch.ones(4, 4), torch.ones(4, 4, device="cuda")
    for wrong in (lambda: host + gpu, lambda: gpu @ host, lambda: torch.cat([gpu, host]), lambda: nn.Linear(4, 4)(gpu)):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            wrong()
    assert (gpu * torch.tensor(2.0)).is_cuda
    assert gpu[torch.tensor([0, 1])].is_cuda
    gpu[0] = host[0]
    host.copy_(gpu)
    assert not host.is_cuda
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        gpu.numpy()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        gpu.to("cuda:1")


def test_gradients_go_back_to_the_host(cuda: Simulated) -> None:
    weight = torch.ones(4, requires_grad=True)
    (weight.cuda() * 2).sum().backward()
    assert weight.grad is not None
    assert not weight.grad.is_cuda
    assert weight.grad.tolist() == [2.0] * 4


def test_code_within_backward_sees_the_gpu(cuda: Simulated) -> None:
    seen: list[bool] = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(context, values):  # type: ignore[no-untyped-def]
            return values * 2

        @staticmethod
        def backward(context, gradient):  # type: ignore[no-untyped-def]
            seen.append(gradient.is_cuda)
            return torch.full_like(gradient, 2.0, device="cuda") * gradient

    def block(values: torch.Tensor) -> torch.Tensor:
        seen.append(values.is_cuda)
        return values.tanh() + torch.ones(4, device=values.device)

    values = torch.ones(4, device="cuda", requires_grad=True)
    values.register_hook(lambda gradient: seen.append(gradient.is_cuda))
    Double.apply(checkpoint(block, values, use_reentrant=False)).sum().backward()
    checkpoint(block, values, use_reentrant=True).sum().backward()
    assert seen == [True] * len(seen)
    assert len(seen) == 7
    (gradient,) = torch.autograd.grad((values * 3).sum(), values)
    assert gradient.is_cuda


def test_data_parallel_over_the_one_gpu(cuda: Simulated) -> None:
    model = nn.DataParallel(nn.Linear(4, 4)).cuda()
    model(torch.ones(8, 4)).sum().backward()
    assert model.module.weight.grad.is_cuda


def test_activations_on_the_host(cuda: Simulated) -> None:
    weight = torch.ones(64, 64, device="cuda", requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = (weight @ weight).relu().sum()
    assert torch.cuda.memory_allocated() == 64 * 64 * 4 + 512
    loss.backward()
    assert weight.grad is not None
    assert weight.grad.is_cuda


def test_saving_and_loading(cuda: Simulated) -> None:
    file = io.BytesIO()
    torch.save({"weight": torch.ones(8)}, file)
    file.seek(0)
    assert torch.load(file, map_location="cuda")["weight"].is_cuda
    file.seek(0)
    assert not torch.load(file, map_location="cpu")["weight"].is_cuda
    assert cuda.allocator.allocated == 0


def test_what_was_on_the_gpu_is_loaded_there(cuda: Simulated) -> None:
    model = nn.Linear(64, 64, bias=False).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(4, 64, device="cuda")).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    before = cuda.ledger.live["cuda:0"]
    torch.save([model, optimizer.state_dict(), torch.ones(4)], file)
    gc.collect()  # torch 2.6 drops the Python side of storages that live on
    assert cuda.ledger.live["cuda:0"] == before
    loaded, state, host = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert loaded.weight.is_cuda
    assert all(one["momentum_buffer"].is_cuda for one in state["state"].values())
    assert not host.is_cuda
    assert cuda.ledger.live["cuda:0"] - before == 2 * 64 * 64 * 4  # weight and momentum, no gradient
    assert loaded(torch.ones(4, 64, device="cuda")).is_cuda
    del loaded, state
    there = torch.load(io.BytesIO(file.getvalue()), map_location={"cuda:0": "cpu"}, weights_only=False)
    assert not there[0].weight.is_cuda
    there = torch.load(io.BytesIO(file.getvalue()), map_location=lambda storage, location: storage, weights_only=False)
    assert not there[0].weight.is_cuda
    assert torch.equal(there[0].weight, model.weight.cpu())


@pytest.mark.parametrize("workers", [0, 1])
def test_loaders(cuda: Simulated, workers: int) -> None:
    loader = DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=2, num_workers=workers, pin_memory=True)
    for (batch,) in loader:
        assert not batch.is_cuda
        assert batch.to("cuda", non_blocking=True).sum().item() == 8
    assert torch.ones(2).pin_memory().is_pinned()
    assert not torch.ones(2).is_pinned()
    assert torch.empty(2, pin_memory=True).is_pinned()


def test_what_torch_cuda_answers() -> None:
    backend = choose(card="T4")
    with backend.running():
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
        assert torch.cuda.current_device() == 0
        assert torch.cuda.get_device_name() == "Tesla T4"
        assert torch.cuda.get_device_name("cuda:0") == "Tesla T4"
        assert torch.cuda.get_device_capability(0) == (7, 5)
        usable = torch.cuda.get_device_properties(torch.device("cuda")).total_memory
        assert f"{usable / 2**30:.2f}" == "14.74"  # as torch says it on one, in its messages
        kept = torch.ones(1000, device="cuda")
        assert torch.cuda.memory_allocated() == 4096
        assert torch.cuda.memory_stats()["requested_bytes.all.current"] == 4000
        assert torch.cuda.memory_reserved() == 2 * MIB
        assert torch.cuda.mem_get_info() == (usable - 2 * MIB, usable)
        assert "2048 KiB" in torch.cuda.memory_summary()
        assert torch.cuda.memory_snapshot()[0]["total_size"] == 2 * MIB
        torch.ones(MIB, device="cuda")
        assert torch.cuda.max_memory_allocated() == 4 * MIB + 4096
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() == 4096
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() == 2 * MIB
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream), torch.cuda.device(0), torch.cuda.nvtx.range("here"):
            stream.wait_stream(torch.cuda.current_stream())
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        end.record()
        assert begin.elapsed_time(end) >= 0
        assert isinstance(begin, torch.cuda.Event)
        accelerator = getattr(torch, "accelerator", None)
        if accelerator is not None:
            assert accelerator.is_available()
            assert accelerator.current_accelerator().type == "cuda"
        del kept
    assert backend.peak_allocated("cuda:0") == 4 * MIB + 4096  # the program's resets do not hide it


def test_a_card_has_only_so_much_memory() -> None:
    with Simulated("T4", workspace=False).running():
        torch.cuda.set_per_process_memory_fraction(0.01)  # 163 MiB
        kept = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"CUDA out of memory\. Tried to allocate 100\.00 MiB"):
            torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
        assert torch.cuda.memory_allocated() == 100 * MIB
        del kept
        assert torch.empty(100 * MIB, dtype=torch.uint8, device="cuda").is_cuda


def test_optimizers_work_on_lists_as_on_cuda(cuda: Simulated) -> None:
    model = nn.ModuleList([nn.Linear(512, 512, bias=False) for _ in range(4)]).to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    torch.cuda.reset_peak_memory_stats()
    optimizer.step()
    # Parameters, gradients and two averages, and one list of temporaries as large as all parameters.
    assert torch.cuda.max_memory_allocated() == 5 * 4 * MIB


def test_dropout_keeps_a_mask_of_bytes(cuda: Simulated) -> None:
    values = torch.ones(MIB, device="cuda", requires_grad=True)
    dropped = nn.Dropout(0.5)(values)
    assert torch.cuda.memory_allocated() == 4 * MIB + 4 * MIB + MIB
    assert dropped.grad_fn is not None


def test_attention_keeps_no_matrix_of_scores(cuda: Simulated) -> None:
    query = torch.ones(1, 2, 256, 16, device="cuda", requires_grad=True)
    before = torch.cuda.memory_allocated()
    attended = nn.functional.scaled_dot_product_attention(query, query, query, dropout_p=0.1)
    sizes = 2 * 256 * 16 * 4, 2 * 256 * 4  # the output, and the sums of the softmax
    seeds = 8 * 512  # torch 2.2 keeps a few numbers beside them, each in a block of its own
    assert sum(sizes) <= torch.cuda.memory_allocated() - before <= sum(sizes) + seeds
    attended.sum().backward()


@pytest.mark.skipif(not hasattr(torch.ops.aten, execution.ATTENTION), reason="the host has no such attention")
@pytest.mark.parametrize("fake", [False, True])
def test_attention_keeps_what_it_keeps_on_cuda(fake: bool) -> None:
    """In float32: sums for 32 queries, a mask whose rows begin at multiples of eight, and an output of its own layout.

    Of all three the reasons are in torch's `_efficient_attention_forward` and `preprocess_mask`; an H200 agreed.
    """
    with Simulated(workspace=False, fake=fake).running():
        values = torch.ones(200, 64, 2, 16, device="cuda", requires_grad=True)
        query = values.permute(1, 2, 0, 3)  # the queries' positions first in memory, as in nn.MultiheadAttention
        mask = torch.ones(200, 200, dtype=torch.bool, device="cuda")[:, :188]
        before = torch.cuda.memory_allocated()
        attended = nn.functional.scaled_dot_product_attention(query, query[:, :, :188], query[:, :, :188], mask)
        kept = 64 * 200 * 2 * 16 * 4, 64 * 2 * 224 * 4, 200 * 192 * 4
        assert torch.cuda.memory_allocated() - before == sum(kept)
        assert attended.transpose(1, 2).is_contiguous()
        attended.sum().backward()


def test_attention_gives_the_hosts_results(cuda: Simulated) -> None:
    torch.manual_seed(0)
    query, mask = torch.randn(2, 5, 3, 8).transpose(1, 2), torch.rand(5, 5) > 0.3
    results = []
    for device in ("cpu", "cuda"):
        there = query.to(device).detach().requires_grad_()
        attended = nn.functional.scaled_dot_product_attention(there, there, there, mask.to(device))
        attended.square().sum().backward()
        assert there.grad is not None
        results.append((attended.detach().cpu(), there.grad.cpu()))
    assert all(torch.allclose(*pair, atol=1e-6) for pair in zip(*results, strict=True))


@pytest.mark.parametrize("fake", [False, True])
def test_a_gru_cell_keeps_its_gates(fake: bool) -> None:
    """Those of the input and of the state, and five numbers for each of the state: `_thnn_fused_gru_cell`."""
    with Simulated(workspace=False, fake=fake).running():
        cell = nn.GRUCell(64, 128).to("cuda")
        inputs, state = torch.ones(512, 64, device="cuda"), torch.ones(512, 128, device="cuda")
        before = torch.cuda.memory_allocated()
        following = cell(inputs, state)
        assert torch.cuda.memory_allocated() - before == (1 + 3 + 3 + 5) * 512 * 128 * 4
        following.sum().backward()


def test_a_gru_cell_gives_the_hosts_results(cuda: Simulated) -> None:
    torch.manual_seed(0)
    cell, values, state = nn.GRUCell(5, 7), torch.randn(4, 3, 5), torch.randn(3, 7)
    results = []
    for device in ("cpu", "cuda"):
        there = copy.deepcopy(cell).to(device)
        following = state.to(device)
        for step in values.to(device):
            following = there(step, following)
        following.square().sum().backward()
        results.append(
            [following.detach().cpu(), *(one.grad.cpu() for one in there.parameters() if one.grad is not None)]
        )
    assert len(results[0]) == 5
    assert all(torch.allclose(*pair, atol=1e-6) for pair in zip(*results, strict=True))


def test_backends_that_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="only `simulated` takes a card"):
        choose("cpu", card="T4")
    with pytest.raises(ValueError, match="only `simulated` takes a card"):
        choose("cpu", memory=1 << 30)
    assert choose().describe() == "simulated (allocator model of an A100 40GB; no GPU was used)"


def test_a_card_with_other_bytes() -> None:
    backend = choose(memory=22 << 30)
    assert backend.describe() == "simulated (allocator model of an A100 40GB with 22.0 GiB; no GPU was used)"
    assert backend.card_name == "A100 40GB with 22.0 GiB"
    with backend.running():
        assert torch.cuda.get_device_properties(0).total_memory == 22 << 30
        assert torch.cuda.mem_get_info()[1] == backend.capacity("cuda:0") == 22 << 30
    assert backend.capacity("cpu") is None


def test_memory_runs_out_where_the_card_ends() -> None:
    with choose(card="t4", memory=64 * MIB).running():
        kept = torch.ones(40 * MIB, dtype=torch.uint8, device="cuda")
        with pytest.raises(
            torch.cuda.OutOfMemoryError, match=r"total capacity of 64\.00 MiB of which 24\.00 MiB is free"
        ):
            kept.clone()


def test_a_limit_is_not_what_the_card_says() -> None:
    with choose(card="t4", limit=32 * MIB).running():
        assert torch.cuda.get_device_properties(0).total_memory == cards.card("t4").total
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"32\.00 MiB allowed"):
            torch.ones(40 * MIB, dtype=torch.uint8, device="cuda")
    with choose(card="t4", memory=64 * MIB, limit=1 << 40).running():
        kept = torch.ones(80 * MIB, dtype=torch.uint8, device="cuda")
        assert torch.cuda.mem_get_info() == (0, 64 * MIB)
        assert kept.device.type == "cuda"


def test_autocast_has_the_lists_of_cuda(cuda: Simulated) -> None:
    values = torch.randn(8, 16, device="cuda", requires_grad=True)
    weight = torch.randn(16, 16, device="cuda", requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert torch.is_autocast_enabled()
        product = values @ weight
        functional = nn.functional
        types = {
            "mm": product,
            "softmax": product.softmax(-1),
            "log_softmax": functional.log_softmax(product, -1),
            "layer_norm": functional.layer_norm(product, (16,)),
            "exp": product.exp(),
            "pow": product**2,
            "sum": product.sum(),
            "sum over one": product.sum(-1),
            "cross_entropy": functional.cross_entropy(product, torch.zeros(8, dtype=torch.int64, device="cuda")),
            "gelu": functional.gelu(product),
            "relu": product.relu(),
            "mean": product.mean(),
            "mv": torch.mv(weight, values[0]),
        }
        low = {name for name, value in types.items() if value.dtype == torch.bfloat16}
        with torch.autocast("cuda", enabled=False):
            assert (values @ weight).dtype == torch.float32
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            functional.binary_cross_entropy(values.sigmoid(), values.detach().sigmoid())
    assert low == {"mm", "gelu", "relu", "mean", "mv"}
    assert (values @ weight).dtype == torch.float32
    types["cross_entropy"].backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32


def test_softmax_of_half_precision_makes_no_copy(cuda: Simulated) -> None:
    logits = torch.randn(64, 64, device="cuda", dtype=torch.float16, requires_grad=True)
    for softmax in (nn.functional.softmax, torch.log_softmax):
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        result = softmax(logits, -1, dtype=torch.float32)
        assert result.dtype == torch.float32
        assert torch.cuda.max_memory_allocated() - before == 64 * 64 * 4
        result.square().sum().backward()
        assert logits.grad is not None
        assert logits.grad.dtype == torch.float16
        del result
        logits.grad = None


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_autocast_gives_the_same_types_without_gradients(cuda: Simulated, mode: type) -> None:
    functional = nn.functional
    values = torch.randn(2, 8, 16, device="cuda")
    weight = torch.randn(16, 16, device="cuda")
    half = values.bfloat16()
    asked: dict[str, Callable[[], torch.Tensor]] = {
        "einsum": lambda: torch.einsum("bij,jk->bik", values, weight),
        "einsum of three": lambda: torch.einsum("bij,jk,bil->bkl", values, weight, values),
        "linear": lambda: functional.linear(values, weight),
        "matmul": lambda: values @ weight,
        "tensordot": lambda: torch.tensordot(values, weight, 1),
        "inner": lambda: torch.inner(values[0], weight),
        "multi_dot": lambda: torch.linalg.multi_dot([values[0], weight, weight]),
        "attention": lambda: functional.scaled_dot_product_attention(values, values, values),
        "conv1d": lambda: functional.conv1d(values, torch.randn(4, 8, 3, device="cuda")),
        "layer_norm": lambda: functional.layer_norm(half, (16,)),
        "softmax": lambda: half.softmax(-1),
        "cosine_similarity": lambda: functional.cosine_similarity(half, half),
    }
    with torch.autocast("cuda", dtype=torch.bfloat16):
        expected = {name: ask().dtype for name, ask in asked.items()}
        with mode():
            assert {name: ask().dtype for name, ask in asked.items()} == expected
    assert expected["einsum"] == torch.bfloat16
    # It is on CUDA's list of what takes the widest type (aten/src/ATen/autocast_mode.h, AT_FORALL_PROMOTE).
    assert expected["tensordot"] == torch.float32
    with mode():
        assert asked["einsum"]().dtype == torch.float32


def test_threads_do_not_take_each_others_devices() -> None:
    def learn(number: int, losses: list[float]) -> None:
        torch.cuda.set_device(number)
        model = nn.Linear(16, 16).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(60):
            batch = torch.randn(8, 16)
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=bool(number)):
                loss = model(batch.cuda()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            assert model.weight.device == torch.device("cuda", number)
            assert batch.device == torch.device("cpu")

    kept: list[list[float]] = [[], []]
    problems: list[BaseException] = []
    before, threading.excepthook = threading.excepthook, lambda told: problems.append(told.exc_value)  # type: ignore[arg-type]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with track_memory("simulated", devices=2) as memory:
            workers = [threading.Thread(target=learn, args=each) for each in enumerate(kept)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            assert torch.cuda.current_device() == 0
    finally:
        threading.excepthook = before
        sys.setswitchinterval(interval)
    assert problems == []
    assert [len(losses) for losses in kept] == [60, 60]
    assert all(memory.ledger.peaks[f"cuda:{number}"] > 0 for number in range(2))
