"""Measure on a GPU what the documentation says of memory, and keep it in docs/gpu.json.

    python tools/gpu.py                        # on a machine with a GPU: some minutes
    python tools/gpu.py --labels 1000          # and more of the generated programs
    python tools/gpu.py --simulate             # without a GPU: only the simulation again, with the torch that was kept
    python tools/documents.py                  # put the tables into docs/simulated.md and docs/trace.md

Three questions: are the peaks of the programs in `tests/runtime/programs` those that the simulated card gives; does
`trace` name the line in each script of `tests/runtime/leaks`; and does the memory of generated programs
(`tools/truth.py`) grow on the GPU where their label, which was measured on the host, says so. Each process answers
about several things, and what was answered is written at once, so that a run that is cut short keeps what it has.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import os
import platform
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the programs lie in tests
FILE = ROOT / "docs" / "gpu.json"
RUNTIME = ROOT / "tests" / "runtime"
CARD = "h200"
SEED, BATCH = 43, 25
AT_ONCE = max(1, (os.cpu_count() or 1) // 2)


def peaks(path: str, backend: str) -> dict[str, Any]:
    """Bytes at a program's peak, on a backend."""
    import torch

    from torchmemlint.runtime import track_memory

    torch.manual_seed(0)
    card = {"card": CARD} if backend == "simulated" else {}
    with contextlib.redirect_stdout(io.StringIO()), track_memory(backend, **card) as memory:
        kept = runpy.run_path(path)
    del kept
    tensors = max((size for device, size in memory.ledger.peaks.items() if device.startswith("cuda")), default=0)
    return {"tensors": tensors, "allocated": memory.peak, "reserved": memory.peak_reserved}


def traced(path: str, backend: str) -> dict[str, Any]:
    """What `trace` says first of a script whose tensors are on a device, and what it should say."""
    from tests.runtime.tracing import expected, trace

    wanted = expected(Path(path))
    with on_device(backend):
        leaks = [leak for leak in trace(Path(path), backend) if leak.is_growth]
    found = {"line": leaks[0].line.line, "bytes": leaks[0].bytes_per_turn} if leaks else None
    return {"wanted": {"line": wanted.line, "bytes": wanted.nbytes} if wanted else None, "found": found}


def labels(first: str, backend: str) -> list[dict[str, Any]]:
    """Of some generated programs, their label and the bytes that a GPU has allocated at each batch."""
    import torch

    from tests.truth import measure
    from tests.truth.pairs import Tally, pairs
    from tests.truth.sample import plans

    begin = int(first)
    drawn = list(islice(plans(SEED, begin + BATCH), begin, None))
    rows = []
    for pair in pairs(SEED, drawn, Tally()):
        for example in filter(None, (pair.first, pair.second)):
            sizes: list[int] = []
            look: Callable[[], None] = lambda sizes=sizes: sizes.append(torch.cuda.memory_allocated())  # noqa: E731
            with measure.batches_seen_by(look), on_device(backend):
                again = measure.run(example.program.files, example.program.drive)
            label = example.label
            rows.append(
                {
                    "truth": label.truth,
                    "live": label.live,
                    "bytes": label.bytes_per_iteration,
                    "nodes": measure.growth(again.nodes),
                    "allocated": measure.growth(sizes),
                    "error": again.error,
                }
            )
    return rows


QUESTIONS: dict[str, Callable[[str, str], Any]] = {"peaks": peaks, "traced": traced, "labels": labels}


def on_device(backend: str) -> contextlib.AbstractContextManager[Any]:
    """While entered, tensors are made on a device, but not the numbers of a generator that is given: a loader that
    shuffles has one of the host."""
    import torch
    from torch.utils import _device

    class Placed(_device.DeviceContext):  # type: ignore[misc]  # torch gives the class no types: its base is Any
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if kwargs and kwargs.get("generator") is not None:
                return func(*args, **kwargs)
            return super().__torch_function__(func, types, args, kwargs)

    return Placed(torch.device(backend))


def answer(question: str, about: list[str], backend: str) -> Iterator[str]:
    """The answers as lines of JSON, until what the last one left on the GPU would count for the next."""
    import torch

    for one in about:
        try:
            found = QUESTIONS[question](one, backend)
        except Exception as error:  # noqa: BLE001 (the next can be answered all the same)
            found = {"error": f"{type(error).__name__}: {error}"[:600]}
        yield json.dumps([one, found])
        if backend == "cuda":
            gc.collect()
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
            if torch.cuda.memory_reserved():
                return


def asked(question: str, about: list[str], backend: str) -> dict[str, Any]:
    """The answers, of other processes; what one printed about the first that it did not answer."""
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if backend == "simulated" else {}
    told: dict[str, Any] = {}
    while left := [one for one in about if one not in told]:
        command = [sys.executable, "-W", "ignore", str(Path(__file__)), "--ask", question, backend, *left]
        done = subprocess.run(command, env={**os.environ, **hidden}, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
        told.update(json.loads(line) for line in lines)
        if not lines:
            told[left[0]] = {"error": done.stderr.strip()[-600:]}
    return told


def answers(question: str, about: list[str], backend: str) -> Iterator[dict[str, Any]]:
    """The answers about several things by name, as they come from some processes at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = [pool.submit(asked, question, part, backend) for n in range(AT_ONCE) if (part := about[n::AT_ONCE])]
        for part in as_completed(parts):
            print(f"{question} on {backend}: {len(part.result())} answered", file=sys.stderr)
            yield {Path(one).stem: told for one, told in part.result().items()}


def write(kept: dict[str, Any]) -> None:
    """Keep what there is."""
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def compare(kept: dict[str, Any], backend: str, name: str) -> None:
    """The peaks on a backend, beside those that are kept."""
    programs = [str(path) for path in sorted((RUNTIME / "programs").glob("*.py"))]
    found = kept.setdefault("peaks", {Path(one).stem: {} for one in programs})
    for some in answers("peaks", programs, backend):
        for program, told in some.items():
            found.setdefault(program, {})[name] = told
        write(kept)


def measured(count: int, backend: str) -> None:
    """All of it."""
    import torch

    kept: dict[str, Any] = {
        "card": torch.cuda.get_device_name() if backend == "cuda" else backend,
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "date": date.today().isoformat(),
        "simulated": date.today().isoformat(),
    }
    compare(kept, backend, "cuda")
    compare(kept, "simulated", "simulated")
    scripts = [str(path) for path in sorted((RUNTIME / "leaks").glob("*/*.py"))]
    kept["traced"] = {Path(one).stem: {} for one in scripts}
    for some in answers("traced", scripts, backend):
        kept["traced"] |= some
        write(kept)
    kept["labels"] = []
    for some in answers("labels", [str(begin) for begin in range(0, count, BATCH)], backend):
        kept["labels"] += [row for rows in some.values() if isinstance(rows, list) for row in rows]
        write(kept)


def simulated_again() -> int:
    """The simulation's peaks once more, beside the GPU's."""
    import torch

    kept = json.loads(FILE.read_text(encoding="utf-8"))
    if torch.__version__ != kept["torch"]:
        print(f"the GPU's figures are of torch {kept['torch']}, and this is {torch.__version__}", file=sys.stderr)
        return 2
    kept["simulated"] = date.today().isoformat()
    compare(kept, "simulated", "simulated")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=200, metavar="N", help="about so many generated pairs")
    parser.add_argument("--simulate", action="store_true", help="keep the GPU's figures, and simulate again")
    parser.add_argument("--ask", nargs="+", metavar="WHAT", help="QUESTION BACKEND ABOUT...: lines of JSON")
    parser.add_argument("--backend", default="cuda", choices=("cuda", "cpu"), help="`cpu` only tries the tool out")
    choices = parser.parse_args()
    if choices.ask:
        question, backend, *about = choices.ask
        for line in answer(question, about, backend):
            print(line, flush=True)
        return 0
    if choices.simulate:
        return simulated_again()
    measured(choices.labels, choices.backend)
    return 0


if __name__ == "__main__":
    sys.exit(main())
