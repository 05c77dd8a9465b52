"""Runs a script in this process and says what grows: the scripts of `leaks/` are traced by it."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from torchmemlint.runtime import track_memory
from torchmemlint.runtime.instrument import Instrumented
from torchmemlint.runtime.leaks import Leak
from torchmemlint.runtime.loops import LoopWatch
from torchmemlint.runtime.memory import MemoryUse
from torchmemlint.runtime.order import ProjectFiles
from torchmemlint.runtime.tracing import LeakAnalysis

_EXPECTED = re.compile(r"# leak: ([\d_]+) bytes per step")


@dataclass(frozen=True)
class Expected:
    """What a script's comment says: the line that leaks, and by how much."""

    line: int
    nbytes: int


def expected(path: Path) -> Expected | None:
    """The expectation of a script, None for one that leaks nothing."""
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = _EXPECTED.search(text)
        if found:
            return Expected(number, int(found[1].replace("_", "")))
    return None


def trace(path: Path, backend: str = "cpu") -> list[Leak]:
    """Run a script as a program, and give what grows."""
    memory, analysis = traced(path, backend)
    return memory.leaks_with(analysis.passes)


def traced(path: Path, backend: str = "cpu") -> tuple[MemoryUse, LeakAnalysis]:
    """Run a script as a program, and give what was measured and what looked at it."""
    module = ModuleType("__main__")
    module.__file__ = str(path)
    before = sys.modules["__main__"]
    torch.manual_seed(0)
    try:
        sys.modules["__main__"] = module
        steps: list[Callable[[str], None]] = []
        with track_memory(backend, on_step=lambda series: steps[0](series)) as memory:
            ledger = memory.ledger
            loops = LoopWatch(steps=10_000, seconds=600, now=lambda: ledger.now)
            steps.append(loops.step)
            run: Any = SimpleNamespace(memory=memory, ledger=ledger, watch=memory._watch, steps=memory._watch._steps)
            analysis = LeakAnalysis(run)
            loops.on_turn.append(analysis.turn)
            loops.on_leave.append(analysis.leave)
            instrumented = Instrumented(ProjectFiles((str(path.parent),)), loops)
            with contextlib.redirect_stdout(io.StringIO()), instrumented:
                exec(instrumented.code(str(path), path.read_bytes()), module.__dict__)
        return memory, analysis
    finally:
        sys.modules["__main__"] = before
        module.__dict__.clear()
