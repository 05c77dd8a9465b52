"""Programs of different kinds: simulated and on the host, their peaks agree to the byte or differ for a reason."""

from __future__ import annotations

import importlib
import json
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torchmemlint.runtime import MemoryUse, internals, track_memory  # noqa: E402

pytestmark = [
    pytest.mark.skipif(torch.cuda.is_available(), reason="simulates what is there"),
    pytest.mark.filterwarnings("ignore"),
]
PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"), key=lambda path: path.stem)
GPU = Path(__file__).parents[2] / "docs" / "gpu.json"

# What the host's run holds more (negative: less) than the simulated GPU and its host together, and why.
EXPLAINED = {
    # The host keeps a mask of float32 for each dropout, CUDA one of bytes: two times 128 x 256 elements.
    "dropout_network": 2 * 128 * 256 * (4 - 1),
    # CUDA's attention keeps its output in another layout than the one that the next layer needs, which copies it, the
    # sums of its softmax for a multiple of 32 queries, and a mask in rows of a multiple of eight: two layers, and one.
    "encoder_with_padding": -2 * 4 * (4 * 20 * 32 + 4 * 4 * (32 - 20) + 4 * 4 * (24 - 20)),
    "vision_transformer": -4 * (4 * 17 * 48 + 4 * 4 * (32 - 17)),
}
# CUDA's autocast computes layer norms in float32, the host's in half precision.
OTHER_LISTS = {"mixed_bfloat16", "mixed_float16"}
# For each of five steps, CUDA's GRU cell keeps three numbers more for each of its state than the host's operations.
EXPLAINED["truncated_recurrence"] = -5 * 3 * 4 * 8 * 64
if not hasattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu"):
    del EXPLAINED["encoder_with_padding"], EXPLAINED["vision_transformer"]
# Before torch 2.4, the host does not compute all of float16, and the fused attention has results without a rule.
OLD = not hasattr(torch, "get_device_module")
# The rows that a mask chooses are counted without values as if it chose all.
UPPER_BOUND = {"experts"}


@contextmanager
def foreach_on_the_host() -> Iterator[None]:
    """Let optimizers work on lists on the host too, as they do on CUDA unless asked otherwise."""
    name = "_default_to_fused_or_foreach"  # the function by which they choose
    original = getattr(importlib.import_module("torch.optim.optimizer"), name)
    modules = [module for key, module in sys.modules.items() if key.startswith("torch.optim") and hasattr(module, name)]
    for module in modules:
        setattr(module, name, lambda *arguments, **keywords: (False, True))
    try:
        yield
    finally:
        for module in modules:
            setattr(module, name, original)


def run(path: Path, backend: str, fake: bool = False) -> MemoryUse:
    torch.manual_seed(0)
    with track_memory(backend, fake=fake) as memory:
        kept = runpy.run_path(str(path))
    del kept
    return memory


def peak_of_all_devices(memory: MemoryUse) -> int:
    """The most bytes alive at once, wherever they are."""
    ledger = memory.ledger
    changes = sorted((event, change) for device in ledger.devices for event, _, change in ledger.changes(device))
    live = peak = 0
    for _, change in changes:
        live += change
        peak = max(peak, live)
    return peak


@pytest.mark.skipif(internals.RELEASE < (2, 11), reason="the GPU ran torch 2.11")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_documentation_compares_this_simulation_with_a_gpu(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of these figures are the GPU's to the byte (docs/simulated.md has those that are not)."""
    monkeypatch.setattr(internals, "RELEASE", (2, 11))
    told = json.loads(GPU.read_text(encoding="utf-8"))["peaks"][path.stem]["simulated"]
    torch.manual_seed(0)
    with track_memory("simulated", card="h200") as memory:
        kept = runpy.run_path(str(path))
    del kept
    assert memory.ledger.peaks["cuda:0"] == told["tensors"]
    assert (memory.peak, memory.peak_reserved) == (told["allocated"], told["reserved"])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_simulated_and_host_agree(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if OLD and path.stem == "mixed_float16":
        pytest.skip("the host of this torch computes too little in float16")
    simulated = run(path, "simulated")
    told = capsys.readouterr().out
    with foreach_on_the_host():
        host = run(path, "cpu")
    on_host = capsys.readouterr().out
    assert simulated.device == "cuda:0"
    difference = host.ledger.peaks["cpu"] - peak_of_all_devices(simulated)
    if path.stem in OTHER_LISTS:
        assert difference < 0
        assert abs(difference) < 0.08 * host.peak
    else:
        assert difference == EXPLAINED.get(path.stem, 0)
        if path.stem not in EXPLAINED:
            assert told == on_host  # the same values: losses, rewards, labels
    assert simulated.steps == host.steps
    allocated = simulated.peak
    assert allocated >= simulated.ledger.peaks["cuda:0"]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_same_without_values(path: Path) -> None:
    real, fake = run(path, "simulated"), run(path, "simulated", fake=True)
    if path.stem in UPPER_BOUND:
        assert real.peak < fake.peak
    elif OLD:
        assert fake.peak == pytest.approx(real.peak, rel=0.03)
    else:
        assert fake.ledger.peaks["cuda:0"] == real.ledger.peaks["cuda:0"]
        assert fake.peak == real.peak
        assert fake.peak_reserved == real.peak_reserved
    assert fake.steps == real.steps
