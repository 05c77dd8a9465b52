"""`torchmemlint trace`: run a program once, and say what grows, who keeps it, and whether a rule knows it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchmemlint.config.resolver import Resolver
from torchmemlint.engine.runner import Request, run
from torchmemlint.findings import Finding
from torchmemlint.runtime.launch import launch, order_for, workspace
from torchmemlint.runtime.leaks import Leak
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.order import SECONDS, Program
from torchmemlint.runtime.results import End, RunResult
from torchmemlint.runtime.trace_report import Timeline, Told, TracedLeak, TraceReport, leak_from_json

STEPS = 30
"""Steps that a loop is given: enough to tell a list that is cleared now and then from a leak."""
ANALYSIS = "torchmemlint.runtime.tracing:analysis"


@dataclass(frozen=True, slots=True)
class Options:
    """How to run the program."""

    backend: str = "auto"
    fake: bool = False
    steps: int = STEPS
    seconds: float = SECONDS
    seed: int = 0
    elsewhere: bool = False  # in an empty directory


class TraceError(Exception):
    """The program cannot be measured; `details` is its traceback."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


def trace(
    program: Program, resolver: Resolver, options: Options, progress: Callable[[int], None] | None = None
) -> TraceReport:
    """Run and lint. Raises TraceError where the program does not run."""
    with workspace() as folder:
        if options.elsewhere:
            program = replace(program, elsewhere=tempfile.mkdtemp(dir=folder))
        order = order_for(
            program,
            folder,
            backend=options.backend,
            fake=options.fake,
            steps=options.steps,
            seconds=options.seconds,
            seed=options.seed,
            analysis=ANALYSIS,
        )
        result = launch(order, progress)
    if not result.usable or not result.analysis:
        raise TraceError(f"the program does not run: {result.error}", result.traceback)
    findings, errors = _lint(result.files, resolver)
    traced = [TracedLeak(leak, told(leak, findings)) for leak in map(leak_from_json, result.analysis["leaks"])]
    return TraceReport(
        program.words,
        str(Path(program.directory).absolute()),
        result,
        tuple(one for one in traced if not one.leak.bounded),
        tuple(one for one in traced if one.leak.bounded),
        Timeline.from_json(result.analysis["timeline"]),
        (*_notes(result, options), *errors),
    )


def _notes(result: RunResult, options: Options) -> Iterator[str]:
    if result.end is End.FAILED:
        yield f"the program ended with an error after {result.steps} steps: {result.error}"
    if result.end is End.TIME:
        yield f"the program was ended after {options.seconds:.0f} s, by the time limit"
    if result.analysis["cut"]:
        yield "a look at the heap or at the graphs was cut at its limit: holders may be missing"
    if not result.analysis["looks"]:
        yield "no loop turned often enough, so nobody looked who holds what (give it more --steps)"


def _lint(files: Sequence[str], resolver: Resolver) -> tuple[list[Finding], tuple[str, ...]]:
    checked = run(Request(tuple(sorted({Path(file).resolve() for file in files})), resolver, jobs=1))
    return list(checked.findings), checked.errors


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
