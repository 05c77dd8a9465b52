"""The tracker's bytes against the reports of torch's own allocators, through a C++ hook compiled for the test."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from torchmemlint.runtime import track_memory  # noqa: E402

SOURCE = Path(__file__).parent / "allocator_reports" / "reports.cpp"
COMPILER = shutil.which("g++") or shutil.which("clang++")
Program = Callable[[], object]


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The compiled hook."""
    if COMPILER is None:
        pytest.skip("needs a C++ compiler")
    home = Path(torch.__file__).parent
    if not (home / "include" / "c10").is_dir():
        pytest.skip("this torch comes without its headers")
    library = tmp_path_factory.mktemp("reports") / "reports.so"
    command = [COMPILER, "-shared", "-fPIC", "-O0", "-std=c++20", f"-I{home / 'include'}", str(SOURCE)]
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", "-o", str(library)]
    command += [f"-L{home / 'lib'}", "-lc10"]
    subprocess.run(command, check=True, capture_output=True)
    loaded = ctypes.CDLL(str(library))
    loaded.live_bytes.restype = loaded.peak_bytes.restype = ctypes.c_int64
    return loaded


@contextlib.contextmanager
def reporting(reports: ctypes.CDLL) -> Iterator[None]:
    reports.start()
    try:
        yield
    finally:
        reports.stop()


def train(model: nn.Module, batch: torch.Tensor, optimizer: type[torch.optim.Optimizer]) -> object:
    stepper = optimizer(model.parameters(), lr=1e-3)
    for _ in range(3):
        stepper.zero_grad()
        model(batch.clone()).square().mean().backward()
        stepper.step()
    return stepper


def perceptron() -> object:
    layers = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 8))
    return train(layers, torch.randn(64, 128), torch.optim.Adam)


def normalised() -> object:
    layers = nn.Sequential(nn.Linear(64, 512), nn.LayerNorm(512), nn.Dropout(), nn.ReLU(), nn.Linear(512, 64))
    return train(layers, torch.randn(128, 64), torch.optim.AdamW)


def convolutional() -> object:
    layers = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 2))
    return train(layers, torch.randn(8, 3, 8, 8), torch.optim.SGD)


def recurrent() -> object:
    cell, head = nn.GRUCell(64, 128), nn.Linear(128, 1)
    hidden = torch.zeros(32, 128)
    for _ in range(10):
        hidden = cell(torch.randn(32, 64), hidden)
    head(hidden).sum().backward()
    return cell, head


def evaluation() -> object:
    layers = nn.Sequential(*[nn.Linear(256, 256) for _ in range(6)])
    with torch.no_grad():
        return [layers(torch.randn(64, 256)).argmax(1) for _ in range(4)]


def kept_graphs() -> object:
    layer = nn.Linear(128, 128)
    return [layer(torch.randn(32, 128)).tanh() for _ in range(8)]


def attention() -> object:
    layer = nn.Linear(64, 192)
    query, key, value = layer(torch.randn(4, 64, 64)).chunk(3, dim=-1)
    weights = (query @ key.transpose(1, 2) / 8).softmax(-1)
    (weights @ value).sum().backward()
    return layer


EXACT = [perceptron, normalised, recurrent, evaluation, kept_graphs, attention]
INSIDE_AN_OPERATION = 0.01
"""The share of the peak that a temporary without a storage may take: oneDNN's convolutions have such workspaces."""
NUMBERS = 64
"""Bytes by which an exact peak may differ: single numbers that an operation makes and frees inside itself."""


@pytest.mark.parametrize("program", [*EXACT, convolutional], ids=lambda one: one.__name__)
def test_bytes_are_the_allocators_own(reports: ctypes.CDLL, program: Program) -> None:
    program()  # what torch allocates once and for all is not the program's
    with reporting(reports):
        kept = program()
        live, peak = reports.live_bytes(), reports.peak_bytes()
    del kept
    with track_memory("cpu") as memory:
        kept = program()
    assert kept is not None
    assert memory.live == live
    assert abs(memory.peak - peak) <= (NUMBERS if program in EXACT else peak * INSIDE_AN_OPERATION)


def test_a_storage_that_is_resized_below_every_operation() -> None:
    """As FSDP frees what it gathered: the tensor stays, its bytes go, and come back."""
    with track_memory("cpu") as memory:
        tensor = torch.ones(1024)
        storage = tensor.untyped_storage()
        storage.resize_(0)
        assert memory.live == 0
        tensor._typed_storage()._resize_(2048)
        assert memory.live == 2048 * 4
        del tensor, storage
        assert memory.live == 0
    assert memory.peak == 2048 * 4
    assert torch.UntypedStorage.resize_ is torch._C.StorageBase.resize_
