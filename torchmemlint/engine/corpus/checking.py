"""Many projects, checked in groups, and one report of them all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from torchmemlint.config.errors import ConfigError
from torchmemlint.config.resolver import Resolver
from torchmemlint.config.settings import Settings
from torchmemlint.engine.corpus.listing import Listed
from torchmemlint.engine.corpus.opening import OpeningError, Project, keep_only, open_project
from torchmemlint.engine.run import RunReport
from torchmemlint.findings import ContextFile, Evidence, Finding
from torchmemlint.immutable import immutable
from torchmemlint.regular import size_of
from torchmemlint.source.discovery import discover

T = TypeVar("T")

_AT_A_TIME = 8  # projects that are unpacked or cloned together
_BYTES = 30_000_000  # of source for each thread that are checked together: a group ends with the wait for its last file


@immutable()
class Ready:
    """A project that lies in a folder, with its files and what is to be done with them."""

    project: Project
    resolver: Resolver
    files: tuple[Path, ...]
    notices: tuple[str, ...] = ()


@dataclass(slots=True)
class Corpus:
    """Projects and how they are checked."""

    listed: Sequence[Listed]
    resolver_for: Callable[[Path], Resolver]  # by the project's folder; may raise ConfigError
    check: Callable[[ProjectsResolver, tuple[Path, ...]], RunReport]  # a group's files
    folder: Path  # for archives and repositories; what a report shows of files stays there
    threads: int = 2  # that check
    seen: Callable[[Ready], None] = lambda ready: None  # hears of each project before it is checked
    _problems: list[str] = field(default_factory=list)

    def report(self) -> RunReport:
        """Check all of them. A project that cannot be had is an error of the report, and all others are checked."""
        reports = [self._checked(group) for group in self._groups()]
        return replace(_joined(reports), errors=(*self._problems, *_all(report.errors for report in reports)))

    def _checked(self, group: Sequence[Ready]) -> RunReport:
        resolver = ProjectsResolver(self.folder, {ready.project.folder: ready.resolver for ready in group})
        report = self.check(resolver, tuple(file for ready in group for file in ready.files))
        shown = {file for finding in report.findings for file in (finding.filename, *_elsewhere(finding))}
        for ready in group:
            keep_only(ready.project, shown)
        names = _Names({ready.project.folder: ready.project.name for ready in group})
        notices = [f"{ready.project.name}: {notice}" for ready in group for notice in ready.notices]
        return replace(names.of_report(report), notices=(*notices, *map(names.of_text, report.notices)))

    def _groups(self) -> Iterator[list[Ready]]:
        group: list[Ready] = []
        size = 0
        for ready in self._opened():
            self.seen(ready)
            group.append(ready)
            size += sum(map(size_of, ready.files))
            if size >= _BYTES * self.threads:
                yield group
                group, size = [], 0
        if group:
            yield group

    def _opened(self) -> Iterator[Ready]:
        waiting = iter(self.listed)
        while batch := list(islice(waiting, _AT_A_TIME)):
            with ThreadPoolExecutor(_AT_A_TIME) as threads:  # gone before processes are forked
                opened = list(threads.map(self._open, batch))
            for one in opened:
                if isinstance(one, str):
                    self._problems.append(one)
                elif (ready := self._ready(one)) is not None:
                    yield ready

    def _open(self, listed: Listed) -> Project | str:
        try:
            return open_project(listed, self.folder)
        except OpeningError as error:
            return str(error)

    def _ready(self, project: Project) -> Ready | None:
        try:
            resolver = self.resolver_for(project.folder)
            found = discover([project.folder], resolver.settings_for)
        except ConfigError as error:
            self._problems.append(_Names({project.folder: project.name}).of_text(str(error)))
            return None
        return Ready(project, resolver, found.files, tuple(found.notices))


class ProjectsResolver(Resolver):
    """The settings of many projects: for a file, those of the project that it lies in."""

    def __init__(self, root: Path, by_folder: dict[Path, Resolver]) -> None:
        super().__init__(root, isolated=True)
        self._projects = by_folder

    def settings_for(self, directory: Path) -> Settings:
        """The settings for the files in an absolute directory."""
        for folder in (directory, *directory.parents):
            if folder in self._projects:
                return self._projects[folder].settings_for(directory)
        return self.fallback()


class _Names:
    """What the files of some projects are called in a report."""

    def __init__(self, by_folder: dict[Path, str]) -> None:
        self._by_folder = by_folder
        self._real: dict[Path, Path] = {}

    def of(self, path: Path) -> Path:
        """PROJECT/path; a file outside of all projects is called what it is."""
        for folder in path.parents:
            if folder in self._by_folder:
                name = self._by_folder[folder] / path.relative_to(folder)
                self._real[name] = path
                return name
        return path

    def real(self, name: Path) -> Path:
        """The file of a name that was given."""
        return self._real.get(name, name)

    def of_text(self, text: str) -> str:
        """A message with names in it instead of paths."""
        for folder, name in self._by_folder.items():
            text = text.replace(f"{folder}{os.sep}", f"{name}/")
        return text

    def of_report(self, report: RunReport) -> RunReport:
        return replace(
            report,
            findings=tuple(map(self._finding, report.findings)),
            sources=lambda name: report.sources(self.real(name)),
            programs=lambda name: report.programs(self.real(name)),
            raw_sources=lambda name: report.raw_sources(self.real(name)),
            fails=lambda finding: report.fails(replace(finding, filename=self.real(finding.filename))),
            errors=tuple(map(self.of_text, report.errors)),
            context=tuple(map(self._context, report.context)),
            tracebacks=tuple(map(self.of_text, report.tracebacks)),
        )

    def _finding(self, finding: Finding) -> Finding:
        evidence = tuple(map(self._evidence, finding.evidence))
        return replace(finding, filename=self.of(finding.filename), evidence=evidence)

    def _evidence(self, evidence: Evidence) -> Evidence:
        return evidence if evidence.filename is None else replace(evidence, filename=self.of(evidence.filename))

    def _context(self, one: ContextFile) -> ContextFile:
        return replace(one, path=self.of(one.path), by=self.of(one.by))


def _joined(reports: Sequence[RunReport]) -> RunReport:
    """One report; its findings are sorted by file, as those of each are."""
    by_name = {finding.filename: report for report in reports for finding in report.findings}
    by_name |= {
        file: report for report in reports for finding in report.findings for file in _elsewhere(finding)
    }  # the same report: a project is in one group

    def of(name: Path) -> RunReport:
        return by_name.get(name, _EMPTY)

    return RunReport(
        findings=tuple(sorted(_all(one.findings for one in reports), key=lambda finding: finding.filename)),  # stable
        files_checked=sum(one.files_checked for one in reports),
        files_skipped=sum(one.files_skipped for one in reports),
        fixed=(),
        sources=lambda name: of(name).sources(name),
        programs=lambda name: of(name).programs(name),
        raw_sources=lambda name: of(name).raw_sources(name),
        notices=_all(one.notices for one in reports),
        failing=sum(one.failing for one in reports),
        fails=lambda finding: of(finding.filename).fails(finding),
        context=_all(one.context for one in reports),
        from_cache=sum(one.from_cache for one in reports),
        tracebacks=_all(one.tracebacks for one in reports),
        left_out=_all(one.left_out for one in reports),
        unsure=sum(one.unsure for one in reports),
        partly=_all(one.partly for one in reports),
    )


_EMPTY = RunReport((), 0, 0, (), sources=lambda name: [])


def _all(parts: Iterable[Iterable[T]]) -> tuple[T, ...]:
    return tuple(item for part in parts for item in part)


def _elsewhere(finding: Finding) -> list[Path]:
    return [one.filename for one in finding.evidence if one.filename is not None]
