"""What changed between two measured runs: the peak, what grows, and the functions that hold the bytes.

The runs are told by the JSON of `trace` or `verify`. Lines move from one version of a program to the next, so bytes are
compared by file and function. Knows nothing of torch; bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.runtime.budget import Budget
from torchmemlint.runtime.results import RunResult

GROWTH = 512
"""Bytes per step by which growth must rise to count: the allocator's smallest block."""


class UnreadableRunError(Exception):
    """A file that tells no run; the message says which, and why."""


@dataclass(frozen=True, slots=True, order=True)
class Function:
    """A function of a program: the file as seen from the program's directory, and its name there."""

    path: str
    name: str

    def __str__(self) -> str:
        return self.path if self.name == "<module>" else f"{self.path} in {self.name}"


@immutable()
class Usage:
    """One run: what it took at its peak, and what it adds from step to step, in all and by function."""

    program: str
    conditions: str
    peak: int
    reserved: int | None
    growth: float
    at_peak: Mapping[Function, int]
    growing: Mapping[Function, float]  # of `trace` alone: what each turn leaves behind
    out_of_memory: bool

    @property
    def steepest(self) -> float:
        """What is added in each step, or by the function that leaves most behind in each turn."""
        return max([self.growth, *self.growing.values()])


@immutable()
class Changes:
    """Two runs, and what of the second is more than it may be."""

    before: Usage
    after: Usage
    allowed: float  # the share of the peak by which it may rise

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the second is worse, as data for a program: `peak`, `growth`, `out of memory`."""
        return tuple(self._reasons())

    def _reasons(self) -> Iterator[str]:
        if self.after.peak > self.before.peak * (1 + self.allowed):
            yield "peak"
        grown = self.after.growth - self.before.growth >= GROWTH
        if grown or any(after - before >= GROWTH for _, before, after in self.growing()):
            yield "growth"
        if self.after.out_of_memory and not self.before.out_of_memory:
            yield "out of memory"

    def at_peak(self) -> list[tuple[Function, int, int]]:
        """The functions whose bytes at the peak differ, with both; the largest change first."""
        return _differing(self.before.at_peak, self.after.at_peak)

    def growing(self) -> list[tuple[Function, float, float]]:
        """The same of what each turn leaves behind."""
        return _differing(self.before.growing, self.after.growing)

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        return {
            "worse": list(self.reasons),
            "allowed": self.allowed,
            "before": _usage(self.before),
            "after": _usage(self.after),
            "at_peak": [_change(*one) for one in self.at_peak()],
            "growing": [_change(*one) for one in self.growing()],
        }


def _usage(one: Usage) -> dict[str, Any]:
    return {
        "program": one.program,
        "conditions": one.conditions,
        "peak": one.peak,
        "reserved": one.reserved,
        "growth": one.growth,
        "out_of_memory": one.out_of_memory,
    }


def _change(function: Function, before: float, after: float) -> dict[str, Any]:
    return {"path": function.path, "function": function.name, "before": before, "after": after}


def _differing(before: Mapping[Function, Any], after: Mapping[Function, Any]) -> list[tuple[Function, Any, Any]]:
    every = sorted({*before, *after})
    pairs = [(function, before.get(function, 0), after.get(function, 0)) for function in every]
    return sorted((one for one in pairs if one[1] != one[2]), key=lambda one: -abs(one[2] - one[1]))


def over(usage: Usage, budget: Budget) -> tuple[str, ...]:
    """Which limits of its budget a run is over: `peak`, `growth`."""
    limits = {"peak": (usage.peak, budget.peak), "growth": (usage.steepest, budget.growth)}
    return tuple(name for name, (taken, limit) in limits.items() if limit is not None and taken > limit)


def read_usage(path: Path) -> Usage:
    """A run from the JSON that `trace` or `verify` wrote. Raises UnreadableRunError."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableRunError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise UnreadableRunError(f"{path}: not JSON: {error}") from None
    try:
        return _read(values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        told = f"{type(error).__name__}: {error}"
        raise UnreadableRunError(f"{path}: not what trace or verify writes as JSON ({told})") from None


def _read(values: Mapping[str, Any]) -> Usage:
    told = values["run"] if "run" in values else values["before"]
    run = RunResult.from_json({"analysis": {}, **told, "ranks": []})
    directory = PurePath(values["directory"])

    def function(path: str, name: str) -> Function:
        try:
            path = PurePath(path).relative_to(directory).as_posix()
        except ValueError:  # elsewhere
            path = PurePath(path).as_posix()
        return Function(path, name)

    at_peak: Counter[Function] = Counter()
    for line in run.lines:
        at_peak[function(line.path, line.function)] += line.nbytes
    growing: Counter[Function] = Counter()
    for leak in values.get("leaks", ()):
        growing[function(leak["line"]["path"], leak["line"]["function"])] += leak["growth"]["bytes_per_turn"]
    conditions = f"{run.description}, torch {run.torch}, {run.steps} steps"
    return Usage(
        values["program"],
        conditions,
        run.peak,
        run.peak_reserved,
        run.growth_per_step,
        at_peak,
        growing,
        run.out_of_memory is not None,
    )
