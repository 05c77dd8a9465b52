"""Makes `examples/out_of_memory.pickle`: the snapshot of `examples/out_of_memory.py` on a simulated GPU.

    python tools/example_snapshot.py

Paths of this machine are replaced by those of a usual one.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

EXAMPLES = Path(__file__).parent.parent / "examples"
NAME = "out_of_memory"
_THERE = "/home/me/project"
_PYTHON = "/usr/lib/python3.12"
_PACKAGES = f"{_PYTHON}/site-packages"
_BEGAN = 1_800_000_000_000_000  # microseconds since 1970


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        script = shutil.copy(EXAMPLES / f"{NAME}.py", folder)
        command = [sys.executable, "-m", "torchmemlint", "trace", "--backend", "simulated", "--isolated", "-q", script]
        subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)
        whole = pickle.loads(Path(folder, f"{NAME}.pickle").read_bytes())
        known = {
            folder: _THERE,
            str(Path(torch.__file__).parent.parent): _PACKAGES,
            str(Path(os.__file__).parent): _PYTHON,
        }
        frames = {id(frame): frame for frame in _frames(whole)}
        for frame in frames.values():
            for here, there in known.items():
                frame["filename"] = frame["filename"].replace(here, there)
        kept = {id(stack): _kept(stack) for stack in _stacks(whole)}
        for holder in _holders(whole):
            holder["frames"] = kept[id(holder["frames"])]
        for place, event in enumerate(whole["device_traces"][0]):
            event["time_us"] = _BEGAN + 100 * place
    (EXAMPLES / f"{NAME}.pickle").write_bytes(pickle.dumps(whole, 4))
    return 0


def _holders(whole: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = [block for segment in whole["segments"] for block in segment["blocks"]]
    return [*whole["segments"], *blocks, *(event for trace in whole["device_traces"] for event in trace)]


def _stacks(whole: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [holder["frames"] for holder in _holders(whole)]


def _frames(whole: dict[str, Any]) -> list[dict[str, Any]]:
    return [frame for stack in _stacks(whole) for frame in stack]


def _kept(stack: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what started the program."""
    last = max((place for place, one in enumerate(stack) if one["filename"].startswith(_THERE)), default=len(stack))
    return stack[: last + 1]


if __name__ == "__main__":
    sys.exit(main())
