"""A run: discover, check in processes, collect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from torchmemlint.config.resolver import Resolver
from torchmemlint.config.settings import Settings
from torchmemlint.engine import context
from torchmemlint.engine.one_file import FileResult, Fixing, Profile, check_bytes, failed
from torchmemlint.engine.pool import Task, check_all, workers_for
from torchmemlint.engine.run import RunReport
from torchmemlint.findings import ContextFile, Finding
from torchmemlint.source.decoding import UnreadableFile, lines_of, read
from torchmemlint.source.loading import load


@dataclass(frozen=True, slots=True)
class Request:
    """What to check and how."""

    files: tuple[Path, ...]  # absolute, as discovered
    resolver: Resolver
    fixing: Fixing = Fixing.NONE
    unsafe: bool = False
    jobs: int | None = None  # at most so many processes; None: as many as there are CPUs


def run(request: Request, progress: Callable[[int], None] = lambda done: None) -> RunReport:
    """Check the files of the request. Raises `ConfigError` before anything is checked."""
    context.forget()
    plan = _plan(request)
    results = check_all(plan.tasks, plan.profiles, workers_for(plan.tasks, request.jobs), progress)
    return _report(results, request, {})


def run_bytes(data: bytes, path: Path, request: Request) -> RunReport:
    """Check bytes at hand (standard input) as the file that `path`, which is not read or written, names."""
    fixing = Fixing.PREVIEW if request.fixing is Fixing.WRITE else request.fixing
    profile = profile_for(request.resolver.settings_for(path.parent), path, fixing, request.unsafe)
    try:
        result = check_bytes(data, path, profile)
    except Exception as error:  # noqa: BLE001 (reported as an internal error, as for files)
        result = failed(path, error)
    return _report([result], request, {path: data})


@dataclass(slots=True)
class _Plan:
    tasks: list[Task] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)


def _plan(request: Request) -> _Plan:
    plan = _Plan()
    numbers: dict[Profile, int] = {}
    for path in request.files:
        profile = profile_for(request.resolver.settings_for(path.parent), path, request.fixing, request.unsafe)
        if profile not in numbers:
            numbers[profile] = len(plan.profiles)
            plan.profiles.append(profile)
        try:
            size = path.stat().st_size
        except OSError:  # reading it will say why
            size = 0
        plan.tasks.append(Task(path, numbers[profile], size))
    return plan


def profile_for(settings: Settings, path: Path, fixing: Fixing = Fixing.NONE, unsafe: bool = False) -> Profile:
    """What to do with one file under these settings."""
    return Profile(
        settings.rules_for(str(path)),
        settings.severities,
        fixing,
        unsafe,
        settings.root,
        target_torch=settings.target_torch,
        contracts=settings.contracts,
    )


def _report(results: Sequence[FileResult], request: Request, at_hand: dict[Path, bytes]) -> RunReport:
    findings, notices = _with_figures(results, request.resolver)
    fixed = tuple(result.fixed for result in results if result.fixed is not None)
    errors = [result for result in results if result.error is not None]
    return RunReport(
        findings=findings,
        files_checked=sum(not result.skipped and result.error is None for result in results),
        files_skipped=sum(result.skipped for result in results),
        fixed=fixed,
        sources=_Sources({one.filename: one.after if one.shown is None else one.shown for one in fixed}, at_hand),
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
    """What was parsed for context only; each process tells what it has parsed."""
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

    def __init__(self, changed: dict[Path, str], at_hand: dict[Path, bytes]) -> None:
        self._lines = {path: lines_of(text) for path, text in changed.items()}
        self._at_hand = at_hand

    def __call__(self, path: Path) -> list[str]:
        if path not in self._lines:
            try:
                data = self._at_hand.get(path)
                self._lines[path] = lines_of(load(read(path) if data is None else data, path).shown)
            except UnreadableFile:
                self._lines[path] = []
        return self._lines[path]
