"""`torchmemlint trace`: run a program once, and say what grows, who keeps it, and whether a rule knows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from torchmemlint.config.resolver import Resolver
from torchmemlint.findings import Finding
from torchmemlint.runtime.commands import CannotMeasure, Options, lint, notes_on
from torchmemlint.runtime.launch import Output, launch, workspace
from torchmemlint.runtime.leaks import Leak
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.order import Program
from torchmemlint.runtime.results import RunResult
from torchmemlint.runtime.trace_report import (
    Timeline,
    Told,
    TracedLeak,
    TraceReport,
    idle_from_json,
    leak_from_json,
    seldom_from_json,
    shared_from_json,
    unneeded_from_json,
    waiting_from_json,
)
from torchmemlint.runtime.uses import Unneeded

_One = TypeVar("_One")
STEPS = 30
"""Steps that a loop is given: enough to tell a list that is cleared now and then from a leak."""
ANALYSIS = "torchmemlint.runtime.tracing:analysis"


def trace(
    program: Program,
    resolver: Resolver,
    options: Options,
    progress: Callable[[int], None] | None = None,
    output: Output | None = None,
) -> TraceReport:
    """Run and lint. `output` is given what the program writes. Raises CannotMeasure where it does not run."""
    with workspace() as folder:
        result = launch(options.order(program, folder, analysis=ANALYSIS), progress, output)
    if not result.usable or not result.analyses:
        raise CannotMeasure(result)
    findings, errors = lint(result.files, resolver)
    traced = [TracedLeak(leak, told(leak, findings), ranks) for leak, ranks in leaks_of(result)]
    return TraceReport(
        program.words,
        str(Path(program.directory).absolute()),
        result,
        tuple(one for one in traced if one.leak.is_growth),
        tuple(one for one in traced if one.leak.bounded),
        Timeline.from_json((result.analysis or result.analyses[0])["timeline"]),
        (*notes_on(result, options), *_notes(result), *errors),
        tuple(one for one in traced if one.leak.gathered and not one.leak.bounded),
        _most(result, "waiting", waiting_from_json, lambda one: one.most),
        _most(result, "idle", idle_from_json, lambda one: one.nbytes),
        max(_unneeded(result), key=lambda one: one.nbytes, default=None),
        _most(result, "seldom", seldom_from_json, lambda one: int(one.nbytes * one.times)),
        _most(result, "shared", shared_from_json, lambda one: one.nbytes),
    )


def _most(result: RunResult, name: str, read: Callable[[Any], _One], nbytes: Callable[[_One], int]) -> tuple[_One, ...]:
    """Of several processes, what the one says that has most of it."""
    told = (tuple(map(read, one.get(name, ()))) for one in result.analyses)
    return max(told, key=lambda ones: sum(map(nbytes, ones)), default=())


def _unneeded(result: RunResult) -> Iterator[Unneeded]:
    for one in result.analyses:
        if one.get("unneeded") is not None:
            yield unneeded_from_json(one["unneeded"])


def leaks_of(result: RunResult) -> list[tuple[Leak, tuple[int, ...]]]:
    """The leaks of all processes, the same of several once, as the process has it where it is steepest."""
    found: dict[tuple[Any, ...], list[tuple[Leak, int | None]]] = {}
    for process in result.ranks or (result,):
        for leak in map(leak_from_json, process.analysis.get("leaks", ())):
            same = leak.line, leak.bounded, leak.growth.series, leak.holder and (leak.holder.name, leak.holder.kind)
            found.setdefault(same, []).append((leak, process.rank))
    told = [
        (max((leak for leak, _ in each), key=_steepness), tuple(rank for _, rank in each if rank is not None))
        for each in found.values()
    ]
    if result.ranks:  # else as the process has them
        told.sort(key=lambda one: -_steepness(one[0]))
    return told


def _steepness(leak: Leak) -> float:
    return leak.bytes_per_turn


def _notes(result: RunResult) -> Iterator[str]:
    if any(one["cut"] for one in result.analyses):
        yield "a look at the heap or at the graphs was cut at its limit: holders may be missing"
    if not any(one["looks"] for one in result.analyses):
        yield "no loop turned often enough, so nobody looked who holds what (give it more --steps)"


def told(leak: Leak, findings: Iterable[Finding]) -> tuple[Told, ...]:
    """The findings on the line that keeps what grows (where it is not known, that makes it), or with it as evidence."""
    lines = {(Path(site.path).resolve(), site.line) for site in _lines(leak)}
    return tuple(
        Told(finding.code, str(finding.filename), finding.span.start.row, finding.message)
        for finding in findings
        if not lines.isdisjoint(_places(finding))
    )


def _lines(leak: Leak) -> list[Site]:
    kept = [holder.filled[0] for holder in (leak.holder, *leak.also) if holder is not None and holder.filled]
    return kept or [leak.made[0][0]]


def _places(finding: Finding) -> Iterator[tuple[Path, int]]:
    stretches = [(finding.filename, finding.span), (finding.filename, finding.statement)]
    stretches += [(one.filename or finding.filename, one.span) for one in finding.evidence]
    for filename, span in stretches:
        path = filename.resolve()
        yield from ((path, row) for row in range(span.start.row, span.end.row + 1))
