"""Everything that is to be measured when a GPU is to be had, in one go: standard library and torch only.

    python tools/on_gpu.py                      # on a machine with a GPU: at most eight minutes
    python tools/on_gpu.py --dry                # without one: the same items on the CPU, to know that they work
    python tools/on_gpu.py --only autocast ddp  # some of them

Each item runs in a process of its own, and its answer is written to docs/on_gpu.json at once (`--output`): a run that
is cut short keeps what it has, and one that is begun again leaves out what is there. An item that fails says so, and
the others go on. The figures of a dry run say nothing of a GPU; its file says `dry`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FILE = ROOT / "docs" / "on_gpu.json"
PROGRAMS = ROOT / "tests" / "runtime" / "programs"
SECONDS = 8 * 60
ITEM_SECONDS = 90
HOW_MANY = 20
DRY = "--dry"


# --- what is measured; each function runs in a process of its own, and gives JSON's types


def conditions() -> dict[str, Any]:
    """The card, torch, and what a context takes before the first tensor."""
    import torch

    if not torch.cuda.is_available():
        return {"card": None, "torch": torch.__version__, "python": platform.python_version()}
    free, total = torch.cuda.mem_get_info()
    return {
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "python": platform.python_version(),
        "usable": total,
        "context": total - free,
    }


def program(name: str) -> dict[str, Any]:
    """A program's peak on the device, and as it is simulated."""
    return both(lambda: runpy.run_path(str(PROGRAMS / name)))


def resnet50() -> dict[str, Any]:
    """A training step of ResNet-50, built here."""
    return both(lambda: train(_resnet50(), _images(), steps=3))


def bert() -> dict[str, Any]:
    """A training step of BERT-base, built of torch's own layers."""
    return both(lambda: train(_transformer(layers=_small(12, 2), width=_small(768, 32)), _words(), steps=3))


def gpt2() -> dict[str, Any]:
    """A training step of GPT-2 small, built of torch's own layers, with a mask."""
    return both(
        lambda: train(_transformer(layers=_small(12, 2), width=_small(768, 32), causal=True), _words(), steps=3)
    )


def autocast() -> dict[str, Any]:
    """The type of each operation's result under autocast, for two types of numbers."""
    import torch

    device = _device()
    x, y = torch.ones(8, 8, device=device), torch.ones(8, 8, device=device)
    operations: dict[str, Callable[[], Any]] = {
        "matmul": lambda: x @ y,
        "linear": lambda: torch.nn.functional.linear(x, y),
        "einsum": lambda: torch.einsum("ij,jk->ik", x, y),
        "tensordot": lambda: torch.tensordot(x, y, 1),
        "bmm": lambda: torch.bmm(x[None], y[None]),
        "softmax": lambda: x.half().softmax(-1),
        "layer_norm": lambda: torch.nn.functional.layer_norm(x.half(), (8,)),
        "sum": lambda: x.half().sum(),
        "exp": lambda: x.half().exp(),
        "cat": lambda: torch.cat([x, y.half()]),
        "addcmul": lambda: torch.addcmul(x, x, y.half()),
        "attention": lambda: torch.nn.functional.scaled_dot_product_attention(
            x[None, None], y[None, None], x[None, None]
        ),
        "conv2d": lambda: torch.nn.functional.conv2d(x[None, None], y[None, None, :3, :3]),
        "cross_entropy": lambda: torch.nn.functional.cross_entropy(x.half(), y.half()),
        "cdist": lambda: torch.cdist(x, y),
    }
    found: dict[str, Any] = {}
    for dtype in (torch.float16, torch.bfloat16):
        for mode in (contextlib.nullcontext, torch.inference_mode):
            for name, run in operations.items():
                key = f"{name} {dtype}{'' if mode is contextlib.nullcontext else ' inference'}".replace("torch.", "")
                try:
                    with mode(), torch.autocast(device, dtype=dtype):
                        found[key] = str(run().dtype).removeprefix("torch.")
                except (RuntimeError, NotImplementedError) as error:
                    found[key] = f"fails: {str(error).splitlines()[0][:80]}"
    return found


def workspaces() -> dict[str, Any]:
    """What is allocated beside tensors after a product, a convolution, and their backwards."""
    import torch

    if not torch.cuda.is_available():
        return {}
    found = {}
    x = torch.ones(64, 64, device="cuda", requires_grad=True)
    before = torch.cuda.memory_allocated()
    (x @ x).sum().backward()
    found["matmul"] = torch.cuda.memory_allocated() - before
    layer, images = torch.nn.Conv2d(64, 64, 3, padding=1).cuda(), torch.ones(8, 64, 56, 56, device="cuda")
    for benchmark in (False, True):
        torch.backends.cudnn.benchmark = benchmark
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        with torch.no_grad():
            result = layer(images)
        tensors = result.numel() * result.element_size()
        found[f"conv2d, benchmark {benchmark}"] = torch.cuda.max_memory_allocated() - before - tensors
    return found


def tool(command: str) -> dict[str, Any]:
    """`verify` or `trace` of an example on the device, and the time that it takes beside the bare program."""
    script = ROOT / "examples" / "leaky_training.py"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        began = time.monotonic()
        bare = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
        plain = time.monotonic() - began
        backend = "cpu" if _is_dry() else "cuda"
        words = [sys.executable, "-m", "torchmemlint", command, "-q", "--isolated", "--backend", backend]
        words += ["--output-format", "json", "-o", str(report), str(script)]
        began = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=_environment())
        seconds = time.monotonic() - began
        told = json.loads(report.read_text()) if report.exists() else {}
    growing = [one["line"]["line"] for one in told.get("leaks", [])]
    return {
        "bare": plain,
        "bare_code": bare.returncode,
        "seconds": seconds,
        "code": done.returncode,
        "growing": growing,
    }


def impact() -> dict[str, Any]:
    """The figures of the rules' experiments on the device, from tools/impact.py."""
    if _is_dry():
        return {"left out": "tools/impact.py takes minutes on a CPU"}
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, str(ROOT / "tools" / "impact.py"), "--backend", "cuda"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=_environment(), cwd=folder)
    return {"code": done.returncode, "said": done.stdout[-4000:]}


def out_of_memory() -> dict[str, Any]:
    """A real snapshot of a program that runs out of memory; it is kept beside the figures."""
    import torch

    if not torch.cuda.is_available():
        return {}
    torch.cuda.memory._record_memory_history(max_entries=20_000)
    torch.cuda.set_per_process_memory_fraction(min(1.0, 2 * 2**30 / torch.cuda.mem_get_info()[1]))
    model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8))).cuda()
    kept, message = [], ""
    try:
        while True:
            kept.append(model(torch.ones(4096, 2048, device="cuda")))
    except torch.cuda.OutOfMemoryError as error:
        message = str(error)
    file = FILE.with_name("on_gpu_out_of_memory.pickle")
    torch.cuda.memory._dump_snapshot(str(file))
    return {"message": message, "results": len(kept), "snapshot": file.name, "bytes": file.stat().st_size}


def ddp() -> dict[str, Any]:
    """The peak of a training under `DistributedDataParallel` with one rank, with and without it."""
    import torch
    from torch import distributed

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "RANK": "0", "WORLD_SIZE": "1"}
    distributed.init_process_group("gloo" if _is_dry() else "nccl")
    try:
        model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4))).to(_device())
        plain = _peak_of(lambda: train(model, torch.ones(64, 512, device=_device()), steps=3))
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        parallel = _peak_of(lambda: train(wrapped, torch.ones(64, 512, device=_device()), steps=3))
    finally:
        distributed.destroy_process_group()
    return {"plain": plain, "parallel": parallel}


ITEMS: dict[str, Callable[..., dict[str, Any]]] = {
    "conditions": conditions,
    "autocast": autocast,
    "workspaces": workspaces,
    "out_of_memory": out_of_memory,
    "resnet50": resnet50,
    "bert": bert,
    "gpt2": gpt2,
    "ddp": ddp,
    "tool": tool,
    "program": program,
    "impact": impact,
}
"""What there is, the most telling first."""


# --- helpers of the items


def both(run: Callable[[], Any]) -> dict[str, Any]:
    """The peak of something on the device, as its allocator has it, and as it is simulated."""
    from torchmemlint.runtime import track_memory

    real = _peak_of(run)
    with contextlib.redirect_stdout(io.StringIO()), track_memory("simulated") as memory:
        kept = run()
    del kept
    return {"real": real, "simulated": {"allocated": memory.peak, "reserved": memory.peak_reserved}}


def _peak_of(run: Callable[[], Any]) -> dict[str, int | None]:
    import torch

    if _is_dry():
        from torchmemlint.runtime import track_memory

        with contextlib.redirect_stdout(io.StringIO()), track_memory("cpu") as memory:
            kept = run()
        del kept
        return {"allocated": memory.peak, "reserved": None}
    torch.manual_seed(0)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with contextlib.redirect_stdout(io.StringIO()):
        kept = run()
    del kept
    return {"allocated": torch.cuda.max_memory_allocated() - before, "reserved": torch.cuda.max_memory_reserved()}


def train(model: Any, batch: Any, steps: int) -> None:
    """Some steps of a training."""
    import torch

    model = model.to(_device())
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        model(batch.to(_device())).float().mean().backward()
        optimizer.step()


def _resnet50() -> Any:
    import torch
    from torch import nn

    def block(inputs: int, width: int, stride: int) -> Any:
        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.body = nn.Sequential(
                    nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                    nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                    nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width),
                )  # fmt: skip
                same = inputs == 4 * width and stride == 1
                short = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
                self.short = nn.Identity() if same else short
                self.last = nn.ReLU(inplace=True)

            def forward(self, x: torch.Tensor) -> Any:
                return self.last(self.body(x) + self.short(x))

        return Block()

    layers: list[Any] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, 1))
    inputs = 64
    for number, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for place in range(count):
            layers.append(block(inputs, width, 2 if place == 0 and number else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def _transformer(layers: int, width: int, *, causal: bool = False) -> Any:
    import torch
    from torch import nn

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(_small(30_522, 100), width)
            heads = max(1, width // 64)
            layer = nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True)
            self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.head = nn.Linear(width, _small(30_522, 100))

        def forward(self, words: torch.Tensor) -> Any:
            mask = None
            if causal:
                mask = nn.Transformer.generate_square_subsequent_mask(words.shape[1], device=words.device)
            return self.head(self.layers(self.embed(words), mask=mask, is_causal=causal))

    return Words()


def _images() -> Any:
    import torch

    return torch.ones(_small(32, 1), 3, _small(224, 64), _small(224, 64))


def _words() -> Any:
    import torch

    return torch.ones(_small(8, 2), _small(256, 16), dtype=torch.long)


def _small(on_gpu: int, dry: int) -> int:
    return dry if _is_dry() else on_gpu


def _is_dry() -> bool:
    return DRY in sys.argv


def _device() -> str:
    return "cpu" if _is_dry() else "cuda"


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}


# --- running them


def names() -> Iterator[tuple[str, list[str]]]:
    """Each item by its key, and its words for a process of its own."""
    for name in ITEMS:
        if name == "program":
            for path in sorted(PROGRAMS.glob("*.py"))[:HOW_MANY]:
                yield f"program {path.name}", ["program", path.name]
        elif name == "tool":
            yield from ((f"tool {command}", ["tool", command]) for command in ("trace", "verify"))
        else:
            yield name, [name]


def main() -> int:
    """Measure what is wanted and not yet there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(DRY, action="store_true", help="on the CPU, to know that the items work")
    parser.add_argument("--only", nargs="+", choices=ITEMS, help="these items")
    parser.add_argument("--output", type=Path, default=FILE)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all of them")
    parser.add_argument("--item", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.item:
        name, *arguments = options.item
        print(json.dumps(ITEMS[name](*arguments)))
        return 0
    known = json.loads(options.output.read_text()) if options.output.exists() else {}
    if known and known["dry"] != options.dry:
        parser.error(
            f"{options.output} is of a run {'without' if options.dry else 'with'} --dry; name another --output"
        )
    found: dict[str, Any] = {"date": str(date.today()), "dry": options.dry, "items": {}, **known}
    end, failed = time.monotonic() + options.seconds, 0
    for key, words in names():
        if (options.only and words[0] not in options.only) or "answer" in found["items"].get(key, {}):
            continue
        left = end - time.monotonic()
        if left <= 0:
            print("the time is over", file=sys.stderr)
            break
        found["items"][key] = one = _run(words, min(left, ITEM_SECONDS), dry=options.dry)
        failed += "error" in one
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{key}: {one.get('error', 'done')} ({one['seconds']:.1f} s)", flush=True)
    return int(failed > 0)


def _run(words: list[str], seconds: float, *, dry: bool) -> dict[str, Any]:
    command = [sys.executable, __file__, *([DRY] if dry else []), "--item", *words]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=_environment())
    except subprocess.TimeoutExpired:
        return {"error": f"not done within {seconds:.0f} s", "seconds": time.monotonic() - began}
    taken = time.monotonic() - began
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no word"])[-1][:300], "seconds": taken}
    return {"answer": json.loads(done.stdout.strip().splitlines()[-1]), "seconds": taken}


if __name__ == "__main__":
    sys.exit(main())
