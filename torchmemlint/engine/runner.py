"""A run: discover, check in processes, collect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from torchmemlint.config.resolver import Resolver
from torchmemlint.config.settings import Settings
from torchmemlint.engine import context
from torchmemlint.engine.cache.kept import Kept
from torchmemlint.engine.one_file import FileResult, Fixing, Profile, check_bytes, failed, is_to_change
from torchmemlint.engine.pool import Reserve, Task, check_all, workers_for
from torchmemlint.engine.run import FixedFile, RunReport
from torchmemlint.findings import ContextFile, Finding
from torchmemlint.immutable import immutable
from torchmemlint.regular import size_of
from torchmemlint.source.decoding import UnreadableFile, lines_of, read
from torchmemlint.source.loading import is_notebook, load
from torchmemlint.source.projects import context_root

if TYPE_CHECKING:
    from torchmemlint.engine.sieve import Sieve


class Executor(Protocol):
    """What checks files elsewhere."""

    @property
    def threads(self) -> int:
        """How many files it checks at a time."""

    def __call__(
        self, tasks: Sequence[Task], profiles: Sequence[Profile], progress: Callable[[int], None]
    ) -> list[FileResult]:
        """Check all files; the results are in the order of `tasks`. `progress` hears how many are done."""


@immutable()
class Request:
    """What to check and how."""

    files: tuple[Path, ...]  # absolute, as discovered
    resolver: Resolver
    fixing: Fixing = Fixing.NONE
    unsafe: bool = False
    jobs: int | None = None  # at most so many processes; None: as many as there are CPUs
    use_cache: bool = False  # are results of earlier runs used, and those of this one kept?
    cache_dir: Path | None = None  # where, whatever the settings say
    sieve: Sieve | None = None  # chooses what is reported, and mended; None: all that is found
    ignoring: str | None = None  # see `Profile`
    executor: Executor | None = None  # what checks the files; None: processes of this machine
    comments: bool = True  # do comments silence findings?
    apart: bool = False  # see `check_all`
    held: Mapping[Path, tuple[tuple[str, str], ...]] = field(default_factory=dict)  # by file: see `Profile`


def run(request: Request, progress: Callable[[int], None] = lambda done: None) -> RunReport:
    """Check the files of the request. Raises `ConfigError` before anything is checked."""
    context.forget()
    with Kept(request.resolver.settings_for, request.cache_dir, enabled=request.use_cache) as kept, Reserve() as ready:
        check = partial(_check, kept=kept, execute=request.executor or _Here(request.jobs, request.apart, ready))
        if request.sieve is None:
            report = _report(check(_plan(request), progress), request, {})
        else:
            results = check(_plan(replace(request, fixing=Fixing.NONE)), progress)
            report = _sifted(results, request, {}, lambda wanted: check(wanted, lambda done: None))
    return replace(report, notices=(*report.notices, *kept.complaints))


@immutable()
class _Here:
    """Checks files in processes of this machine."""

    jobs: int | None
    apart: bool
    ready: Reserve

    def expect(self, tasks: Sequence[Task], profiles: Sequence[Profile]) -> None:
        """Get ready for at least these. Where they are many, workers had better share what is imported here."""
        if self.apart and tasks and workers_for(tasks, self.jobs) == 1:
            self.ready.call(profiles)

    def __call__(
        self, tasks: Sequence[Task], profiles: Sequence[Profile], progress: Callable[[int], None]
    ) -> list[FileResult]:
        workers = workers_for(tasks, self.jobs)
        return check_all(tasks, profiles, workers, progress, apart=self.apart, ready=self.ready)


def _check(plan: _Plan, progress: Callable[[int], None], execute: Executor | _Here, kept: Kept) -> list[FileResult]:
    files = [(task.path, plan.profiles[task.profile]) for task in plan.tasks]
    if isinstance(execute, _Here):
        execute.expect([plan.tasks[number] for number in kept.changed(files)], plan.profiles)
    known = kept.find(files)
    tasks = [task for number, task in enumerate(plan.tasks) if number not in known]
    fresh = execute(tasks, plan.profiles, lambda done: progress(len(known) + done))
    kept.keep((result, plan.profiles[task.profile]) for result, task in zip(fresh, tasks, strict=True))
    rest = iter(fresh)
    return [known[number] if number in known else next(rest) for number in range(len(plan.tasks))]


def check_texts(texts: Sequence[tuple[Path, bytes]], resolver: Resolver, jobs: int | None = None) -> list[FileResult]:
    """What is found in files with other contents than they have: each is checked among the files as they lie there."""
    plan = _Plan()
    for path, data in texts:
        plan.tasks.append(Task(path, len(plan.profiles), len(data), data))
        plan.profiles.append(profile_for(resolver.settings_for(path.parent), path))
    return check_all(plan.tasks, plan.profiles, workers_for(plan.tasks, jobs), lambda done: None)


def run_bytes(data: bytes, path: Path, request: Request) -> RunReport:
    """Check bytes at hand (standard input) as the file that `path`, which is not read or written, names."""
    fixing = Fixing.PREVIEW if request.fixing is Fixing.WRITE else request.fixing
    at_hand = {path: data}

    def check(profile: Profile) -> FileResult:
        try:
            return check_bytes(data, path, profile)
        except Exception as error:  # noqa: BLE001 (reported as an internal error, as for files)
            return failed(path, error)

    preview = replace(request, fixing=fixing, files=(path,))
    profile = _profile(path, preview)
    if request.sieve is None:
        return _report([check(profile)], request, at_hand)
    first = check(replace(profile, fixing=Fixing.NONE))
    report = _sifted([first], preview, at_hand, lambda wanted: [check(one) for one in wanted.profiles])
    return replace(report, fixes_applied_to_disk=request.fixing is Fixing.WRITE)


def _sifted(
    results: Sequence[FileResult],
    request: Request,
    at_hand: dict[Path, bytes],
    fix: Callable[[_Plan], list[FileResult]],
) -> RunReport:
    """The report of what the request's sieve lets through; `fix` does to files what is to be done to those findings."""
    assert request.sieve is not None
    sources = _Sources((), at_hand).program
    findings = [finding for result in results for finding in result.findings]
    kept = request.sieve.sift(findings, [result.path for result in results], sources)
    reported: dict[Path, list[Finding]] = {}
    for finding in kept.findings:
        reported.setdefault(finding.filename, []).append(finding)
    by_path = {one.path: replace(one, findings=tuple(reported.get(one.path, ()))) for one in results}
    if request.fixing is not Fixing.NONE:
        for result in fix(_second_plan(results, by_path, request, sources)):
            first = by_path[result.path]
            by_path[result.path] = replace(result, skipped=first.skipped, context=first.context)
    report = _report(list(by_path.values()), request, at_hand)
    return replace(report, left_out=kept.left_out, unsure=0)  # how many of those it would let through is not known


def _second_plan(
    before: Sequence[FileResult],
    after: Mapping[Path, FileResult],
    request: Request,
    sources: Callable[[Path], list[str]],
) -> _Plan:
    """The files in which something that is reported is to be mended; the rest of what was found there is spared."""
    from torchmemlint.engine.sieve import spared

    plan = _Plan()
    for result in before:
        wanted, profile = after[result.path].findings, _profile(result.path, request)
        if not any(is_to_change(finding, profile) for finding in wanted):
            continue
        ids = {id(finding) for finding in wanted}
        others = [finding for finding in result.findings if id(finding) not in ids]
        plan.tasks.append(Task(result.path, len(plan.profiles), size_of(result.path)))
        plan.profiles.append(replace(profile, spared=spared(result.path, others, sources)))
    return plan


@dataclass(slots=True)
class _Plan:
    tasks: list[Task] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)


def _plan(request: Request) -> _Plan:
    plan = _Plan()
    numbers: dict[Profile, int] = {}
    for path in request.files:
        profile = _profile(path, request)
        if profile not in numbers:
            numbers[profile] = len(plan.profiles)
            plan.profiles.append(profile)
        plan.tasks.append(Task(path, numbers[profile], size_of(path)))
    return plan


def _profile(path: Path, request: Request) -> Profile:
    settings = request.resolver.settings_for(path.parent)
    profile = profile_for(settings, path, request.fixing, request.unsafe)
    held = request.held.get(path, ())
    return replace(profile, ignoring=request.ignoring, kept=request.use_cache, held=held, comments=request.comments)


def profile_for(settings: Settings, path: Path, fixing: Fixing = Fixing.NONE, unsafe: bool = False) -> Profile:
    """What to do with one file under these settings."""
    return Profile(
        settings.rules_for(str(path)),
        settings.severities,
        fixing,
        unsafe,
        context_root(path, settings.root),
        target_torch=settings.target_torch,
        contracts=settings.contracts,
        plugins=settings.plugins,
        limits=settings.limits,
        confidence=settings.confidence,
        trust=settings.fixes.trust,
    )


def _report(results: Sequence[FileResult], request: Request, at_hand: dict[Path, bytes]) -> RunReport:
    findings, notices = _with_figures(results, request.resolver)
    fixed = tuple(result.fixed for result in results if result.fixed is not None)
    errors = [result for result in results if result.error is not None]
    sources = _Sources(fixed, at_hand)
    return RunReport(
        findings=findings,
        files_checked=sum(not result.skipped and result.error is None for result in results),
        files_skipped=sum(result.skipped for result in results),
        from_cache=sum(result.from_cache for result in results),
        unsure=sum(result.unsure for result in results),
        partly=tuple(result.path for result in results if result.partly),
        fixed=fixed,
        sources=sources,
        programs=sources.program,
        raw_sources=sources.raw,
        notices=notices,
        fixes_applied_to_disk=request.fixing is Fixing.WRITE,
        unsafe_fixes=request.unsafe,
        failing=sum(_fails(finding, request.resolver) for finding in findings),
        fails=partial(_fails, resolver=request.resolver),
        errors=tuple(result.problem for result in errors),
        context=_context(results),
        tracebacks=tuple(result.details for result in errors if result.details is not None),
    )


def _with_figures(results: Sequence[FileResult], resolver: Resolver) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings, each with what was measured of it, and what is wrong with the files of measurements."""
    findings = tuple(finding for result in results for finding in result.findings)
    if not findings:
        return (), ()
    from torchmemlint.engine import figures

    return figures.attach(findings, resolver.settings_for)


def _context(results: Sequence[FileResult]) -> tuple[ContextFile, ...]:
    """What was read for context only; each process tells what it has read."""
    checked = {result.path for result in results}
    found: dict[Path, ContextFile] = {}
    for result in results:
        for one in result.context:
            if one.path not in checked:
                found.setdefault(one.path, one)
    return tuple(found[path] for path in sorted(found))


def _fails(finding: Finding, resolver: Resolver) -> bool:
    return finding.severity.rank >= resolver.settings_for(finding.filename.parent).fail_on.rank


class _Sources:
    """The lines of files, read when they are asked for."""

    def __init__(self, fixed: Sequence[FixedFile], at_hand: dict[Path, bytes]) -> None:
        self._lines = {one.filename: lines_of(one.after if one.shown is None else one.shown) for one in fixed}
        self._fixed = {one.filename: one for one in fixed}
        self._at_hand = at_hand
        self._raw: dict[Path, list[str]] = {}

    def __call__(self, path: Path) -> list[str]:
        if path not in self._lines:
            try:
                self._lines[path] = lines_of(load(self._data(path), path).shown)
            except UnreadableFile:
                self._lines[path] = []
        return self._lines[path]

    def program(self, path: Path) -> list[str]:
        """The program that a notebook's cells make; of all other files the same lines."""
        if not is_notebook(path):
            return self(path)
        try:
            fixed = self._fixed.get(path)
            return lines_of(load(self._data(path), path).text if fixed is None else fixed.after)
        except UnreadableFile:
            return []

    def raw(self, path: Path) -> list[str]:
        """The lines of a notebook's JSON; of all other files the same."""
        if not is_notebook(path):
            return self(path)
        if path not in self._raw:
            try:
                source, fixed = load(self._data(path), path), self._fixed.get(path)
                data = source.encode(fixed.after if fixed is not None and fixed.before == source.text else None)
                self._raw[path] = lines_of(data.decode("utf-8-sig"))
            except UnreadableFile:
                self._raw[path] = []
        return self._raw[path]

    def _data(self, path: Path) -> bytes:
        data = self._at_hand.get(path)
        return read(path) if data is None else data
