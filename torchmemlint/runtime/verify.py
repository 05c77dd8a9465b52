"""`torchmemlint verify`: what each finding costs, by running the program with and without its fix.

The program is run as it is (A), again without the tracker where the backend can (A again: its time, the host's heap,
and how much two equal runs differ), then once for each fixable finding that the run reaches (B), and once with all
fixes. Every run is a fresh process with the same seed. Nothing on the disk is changed: the fixed texts are overlaid.
Knows nothing of torch itself; `compare.difference` does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torchmemlint.config.formatting import formatting
from torchmemlint.config.resolver import Resolver
from torchmemlint.engine.one_file import Fixing
from torchmemlint.engine.runner import Request, run, run_bytes
from torchmemlint.findings import Finding
from torchmemlint.fixes.apply import fix_text
from torchmemlint.fixes.edits import BOM
from torchmemlint.fixes.eligibility import eligible
from torchmemlint.immutable import immutable
from torchmemlint.measured import Verdict
from torchmemlint.report.json_format import finding_object
from torchmemlint.report.places import shown_place
from torchmemlint.runtime import commands
from torchmemlint.runtime.compare import compare, differences, saved_where, saves, steadily
from torchmemlint.runtime.demands import room_for
from torchmemlint.runtime.growth import Growth
from torchmemlint.runtime.launch import workspace
from torchmemlint.runtime.leaks import Leak
from torchmemlint.runtime.order import PLAIN, Program
from torchmemlint.runtime.results import End, RunResult
from torchmemlint.runtime.runs import Done, Progress, Runs, Wanted
from torchmemlint.runtime.trace import ANALYSIS, told
from torchmemlint.runtime.trace import STEPS as TRACED
from torchmemlint.runtime.trace_report import leak_from_json
from torchmemlint.runtime.verification import (
    Comparison,
    Difference,
    FindingResult,
    Sameness,
    VerifyReport,
)
from torchmemlint.source.decoding import SourceText, decode, read

_TOLD = 3  # files
NOT_ENOUGH = "its fix is not enough: the program runs out of memory all the same"


@immutable()
class Options(commands.Options):
    """How to verify."""

    unsafe: bool = False  # try also the fixes that may change results
    jobs: int | None = None  # runs at once; None: as many as are not in each other's way


@immutable()
class _Fixed:
    """A finding's fix made alone: the new text, or why not."""

    finding: Finding
    text: str | None
    reason: str = ""


def verify(program: Program, resolver: Resolver, options: Options, progress: Progress) -> VerifyReport:
    """Run, lint, run again, compare. Raises CannotMeasure where the program itself does not run."""
    with workspace() as folder:
        return _Verification(program, resolver, options, progress, folder).report()


class _Verification:
    def __init__(
        self, program: Program, resolver: Resolver, options: Options, progress: Progress, folder: Path
    ) -> None:
        self._program = program
        self._resolver = resolver
        self._options = options
        self._runs = Runs(program, options, progress, folder)
        self._notes: list[str] = []

    def report(self) -> VerifyReport:
        """All of it."""
        runs = self._runs
        before = runs.make("the program as it is", observed=True)
        if before.result.usable and self._options.backend == "auto" and _host_only(before.result):
            runs.options = replace(self._options, backend="cpu")
            before = runs.make("the program on the host, which is all that it uses", observed=True)
        self._demand(before)
        findings, errors = commands.lint(before.result.files, self._resolver)
        self._notes += errors
        fixed = [self._fix_alone(finding) for finding in findings]
        runs.planned = runs.begun + 1 + sum(one.text is not None for one in fixed)
        plain = before.result.backend in PLAIN
        again = runs.make("the program once more", probes=_probes(findings), tracked=not plain)
        runs.planned -= sum(one.text is not None and not self._reached(one.finding, again) for one in fixed)
        self._go_ahead(fixed, before, again)
        steady = self._difference(before, again)
        results = [self._judge(one, before, again, steady) for one in fixed]
        results = self._kept(results, findings)
        count, together = self._together(findings, results, before, again, steady)
        measured = again.result if again.result.usable else before.result
        return VerifyReport(
            self._program.words,
            str(Path(self._program.directory).absolute()),
            self._options.steps,
            before.result,
            tuple(results),
            steady,
            measured.seconds_per_step,
            measured.host_growth if measured.host_measured and (plain or measured.simulated) else None,
            together,
            count,
            tuple(self._notes),
        )

    # --- runs

    def _demand(self, before: Done) -> None:
        """Refuse a program that does not run, and say what is to be known of how it ran."""
        result = before.result
        if not result.usable:
            raise commands.CannotMeasure(result)
        self._notes += commands.notes_on(result, self._options)
        if result.steps == 0:
            self._notes.append(
                "the program made no steps: neither an optimizer nor a loader was used, nor what stands in for these"
            )

    def _alone(self, finding: Finding, text: str) -> Wanted:
        """The program with one finding fixed."""
        place = shown_place(finding.filename, finding.span.start.row, self._resolver.root)
        return Wanted(f"{finding.code} at {place} fixed", ((str(finding.filename), text.removeprefix(BOM)),))

    def _all(self, findings: Iterable[Finding]) -> tuple[int, Wanted]:
        """The program with all fixes that the options allow, and how many these are."""
        paths = tuple(sorted({finding.filename for finding in findings}))
        request = Request(paths, self._resolver, Fixing.PREVIEW, self._options.unsafe, jobs=1)
        fixed = [one for one in run(request).fixed if one.after != one.before]
        overlay = sorted((str(one.filename), one.after.removeprefix(BOM)) for one in fixed)
        return sum(len(one.applied) for one in fixed), Wanted("all fixes", tuple(overlay))

    def _go_ahead(self, fixed: Sequence[_Fixed], before: Done, again: Done) -> None:
        """Make the runs that are sure to be wanted side by side, if they may be."""
        at_once = self._at_once(before.result)
        if at_once < 2 or not again.result.usable:
            return
        reached = [one for one in fixed if self._reached(one.finding, again)]
        wanted = [self._alone(one.finding, one.text) for one in reached if one.text is not None]
        if len(wanted) < len(reached):
            wanted.append(_WHO_HOLDS_WHAT)
        if sum(one.text is not None for one in reached) > 1:
            wanted.append(self._all([one.finding for one in fixed])[1])
        if not self._runs.ahead(wanted, at_once, before.result.end):
            return
        if not before.result.simulated:  # whose times say nothing anyway
            self._notes.append(f"{at_once} runs went side by side (--jobs), so times with a single fix are not told")
        if before.result.demands.writes:
            names = ", ".join(before.result.demands.writes[:_TOLD])
            self._notes.append(f"the program writes what runs side by side share: {names}")

    def _at_once(self, before: RunResult) -> int:
        if before.backend == "cuda":
            return 1  # the card is one
        if self._options.jobs is not None:
            return self._options.jobs
        return room_for(before.demands) if before.simulated else 1  # on the host, time is measured

    def _difference(self, before: Done, after: Done, steady: Difference | None = None) -> Difference:
        if self._options.fake:
            return Difference(Sameness.UNKNOWN, note="fake tensors have no values")
        if not after.result.usable:
            return Difference(Sameness.UNKNOWN, note=after.result.error or "")
        if before.result.failed_looks or after.result.failed_looks:
            return Difference(Sameness.UNKNOWN, note="what looks at the program failed, so values may be missing")
        whole = End.TIME not in (before.result.end, after.result.end)
        return differences(before.order.values_files, after.order.values_files, steady, whole=whole)

    # --- findings and fixes

    def _fix_alone(self, finding: Finding) -> _Fixed:
        if finding.fix is None or not finding.fix.edits:
            return _Fixed(finding, None, "it has no fix to compare with")
        if not eligible(finding, unsafe=self._options.unsafe):
            unsafe = eligible(finding, unsafe=True)
            return _Fixed(
                finding,
                None,
                "its fix may change results: give --unsafe-fixes to try it" if unsafe else "its fix is only a hint",
            )
        source = decode(read(finding.filename))
        alone = [finding] + [replace(one, fix=None) for one in self._findings(source, source.text, finding)]
        result = fix_text(
            source.text,
            alone,
            lambda text: [replace(one, fix=None) for one in self._findings(source, text, finding, every=True)],
            unsafe=True,
            formatting=formatting(finding.filename.parent),
        )
        if not result.applied:
            return _Fixed(finding, None, f"its fix was taken back: {result.rolled_back[0][1]}")
        return _Fixed(finding, result.text)

    def _findings(self, source: SourceText, text: str, but: Finding, *, every: bool = False) -> list[Finding]:
        """The findings of a text that stands for a file; without the one that is being fixed."""
        request = Request((), self._resolver)
        found = run_bytes(source.encode(text), but.filename, request).findings
        return [one for one in found if every or one != but]

    def _reached(self, finding: Finding, again: Done) -> int:
        reached = again.result.reached
        place = finding.filename.resolve(), finding.span.start.row
        return sum(count for key, count in reached.items() if _place(key) == place)

    def _judge(self, fixed: _Fixed, before: Done, again: Done, steady: Difference) -> FindingResult:
        finding = fixed.finding
        reached = self._reached(finding, again) if again.result.usable else None
        result = FindingResult(
            finding_object(finding, self._resolver.root),
            Verdict.NOT_REACHED,
            reached=reached,
            growing=max(
                filter(None, (_growing(finding, one) for one in before.result.ranks or (before.result,))),
                key=lambda one: one[1].bytes_per_step,
                default=None,
            ),
        )
        if reached == 0:
            return result
        if fixed.text is None:
            return replace(result, verdict=Verdict.NOT_TRIED, note=fixed.reason)
        wanted = self._alone(finding, fixed.text)
        after = self._runs.get(wanted)
        if not after.result.usable or (after.result.end is End.FAILED and before.result.end is not End.FAILED):
            return replace(result, verdict=Verdict.FIX_FAILS, note=after.result.error or "")
        compared = self._compare(wanted, before, after, again, steady)
        where = saved_where(compared)
        costs = bool(where)
        verdict = Verdict.CONFIRMED if costs else Verdict.NO_EFFECT
        if compared.difference.sameness is Sameness.CHANGED:
            verdict = Verdict.CHANGES_RESULTS
        if before.result.out_of_memory is not None:
            runs = after.result.out_of_memory is None
            note = "with its fix the program does not run out of memory" if runs else NOT_ENOUGH
            verdict = Verdict.CONFIRMED if runs and verdict is Verdict.NO_EFFECT else verdict
            return replace(result, verdict=verdict, costs=costs or runs, comparison=compared, note=note)
        alone = {"reserved": "of what the allocator reserves alone", "host": "on the host's heap alone"}
        note = alone.get(where[0], "") if where else ""
        return replace(result, verdict=verdict, costs=costs, comparison=compared, note=note)

    def _compare(self, wanted: Wanted, before: Done, after: Done, again: Done, steady: Difference) -> Comparison:
        """The two tracked runs; where these show nothing and the host's heap grows, plain ones as well."""
        differs = self._difference(before, after, steady)
        compared = compare(before.result, after.result, differs)
        growing = again.result.host_measured and steadily(again.result.host_growth)
        if saves(compared) or not growing or again.result.tracked:
            return compared
        plain = self._runs.get(_untracked(wanted))
        if not plain.result.usable:
            return compared
        return compare(before.result, after.result, differs, plain_before=again.result, plain_after=plain.result)

    def _kept(self, results: Sequence[FindingResult], findings: Sequence[Finding]) -> list[FindingResult]:
        """The findings without a fix, with what is kept at their lines: a run that looks who holds what tells it."""
        if not any(one.verdict is Verdict.NOT_TRIED for one in results):
            return list(results)
        looked = self._runs.get(_WHO_HOLDS_WHAT)
        if not looked.result.usable:
            return list(results)
        told = [leak for one in looked.result.analyses for leak in map(leak_from_json, one["leaks"])]
        leaks = [leak for leak in told if not leak.bounded]
        return [
            _with_leak(result, finding, leaks) if result.verdict is Verdict.NOT_TRIED else result
            for result, finding in zip(results, findings, strict=True)
        ]

    def _together(
        self,
        findings: Iterable[Finding],
        results: Sequence[FindingResult],
        before: Done,
        again: Done,
        steady: Difference,
    ) -> tuple[int, Comparison | None]:
        """The program with all fixes that the options allow."""
        tried = [one for one in results if one.comparison is not None]
        if len(tried) < 2:
            return 0, None
        count, wanted = self._all(findings)
        after = self._runs.get(wanted)
        if not after.result.usable:
            self._notes.append(f"with all fixes together the program fails: {after.result.error}")
            return count, None
        plain = None
        if not again.result.tracked:
            plain = self._runs.get(_untracked(wanted))
        return count, compare(
            before.result,
            after.result,
            self._difference(before, after, steady),
            plain_before=None if plain is None else again.result,
            plain_after=None if plain is None or not plain.result.usable else plain.result,
        )


_WHO_HOLDS_WHAT = Wanted("who holds what, for the findings without a fix", analysis=ANALYSIS, least=TRACED)


def _untracked(wanted: Wanted) -> Wanted:
    return replace(wanted, label=f"{wanted.label}, without the tracker", tracked=False)


def _host_only(result: RunResult) -> bool:
    """Whether a program was given a simulated GPU and left it alone: then the host itself can be measured."""
    return result.simulated and all(one.device == "cpu" for one in result.ranks or (result,))


def _with_leak(result: FindingResult, finding: Finding, leaks: Sequence[Leak]) -> FindingResult:
    """A finding with the steepest of the leaks that it says something about; without any, of what is collected."""
    about = [leak for leak in leaks if told(leak, [finding])]
    growing = [leak for leak in about if leak.is_growth]
    collected = bool(about) and not growing
    about = growing or about
    if not about or (collected and result.growing is not None and result.growing[0].startswith("loop ")):
        return result
    by_series: defaultdict[str, float] = defaultdict(float)
    for leak in about:
        by_series[leak.growth.series] += leak.block_bytes or leak.bytes_per_turn
    series, nbytes = max(by_series.items(), key=lambda one: one[1])
    first = max((leak for leak in about if leak.growth.series == series), key=lambda leak: leak.bytes_per_turn)
    growth = Growth(nbytes, first.growth.regularity, first.growth.turns)
    return replace(result, growing=(f"line {first.line}", growth), collected=collected)


def _probes(findings: Sequence[Finding]) -> Mapping[str, tuple[int, ...]]:
    probes: dict[str, tuple[int, ...]] = {}
    for finding in findings:
        path = str(finding.filename)
        probes[path] = tuple(sorted({*probes.get(path, ()), finding.span.start.row}))
    return probes


def _place(key: str) -> tuple[Path, int]:
    path, _, row = key.rpartition(":")
    return Path(path).resolve(), int(row)


def _growing(finding: Finding, run: RunResult) -> tuple[str, Growth] | None:
    """The growth of a line that the finding names, or of the innermost growing loop around it if that is more.

    What a line keeps may have been made by others, and what it made may be kept by others.
    """
    rows = {(finding.filename.resolve(), row) for row in range(finding.span.start.row, finding.span.end.row + 1)}
    for one in finding.evidence:
        rows.add(((one.filename or finding.filename).resolve(), one.span.start.row))
    found = [
        (f"line {line.path}:{line.line}", line.growth)
        for line in run.growing_lines
        if (Path(line.path).resolve(), line.line) in rows
    ][:1]
    row = finding.span.start.row
    growth = {one.series: one.growth for one in run.growth if one.growth.certain and not one.inside}
    around = [
        (name, growth[name])
        for loop in sorted(run.loops, key=lambda loop: -loop.line)
        if Path(loop.path).resolve() == finding.filename.resolve()
        and loop.line <= row <= loop.end_line
        and (name := f"loop {loop.path}:{loop.line}") in growth
    ][:1]
    return max((*around, *found), key=lambda one: one[1].bytes_per_step, default=None)
