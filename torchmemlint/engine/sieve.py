"""What of the findings of a run is not reported: those that the project knows of and lives with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from torchmemlint.baseline import Baseline, BaselineError, Entry, Sifted, read_baseline, sift
from torchmemlint.config.resolver import Resolver
from torchmemlint.config.settings import Settings
from torchmemlint.engine.run import LeftOut
from torchmemlint.findings import Finding
from torchmemlint.immutable import immutable
from torchmemlint.syntax.scopes import Scopes

Sources = Callable[[Path], list[str]]


@immutable()
class Kept:
    """The findings that are reported, in their order, and why others are not."""

    findings: tuple[Finding, ...]
    left_out: tuple[LeftOut, ...] = ()


class Sieve(Protocol):
    """Chooses among the findings of a run."""

    def sift(self, findings: Sequence[Finding], files: Collection[Path], sources: Sources) -> Kept:
        """Those to report. `files` are all that were looked at, `sources` gives their lines."""


class Sieves:
    """One sieve after the other."""

    def __init__(self, sieves: Iterable[Sieve]) -> None:
        self._sieves = tuple(sieves)

    def sift(self, findings: Sequence[Finding], files: Collection[Path], sources: Sources) -> Kept:
        """As `Sieve.sift`."""
        kept = Kept(tuple(findings))
        for sieve in self._sieves:
            after = sieve.sift(kept.findings, files, sources)
            kept = Kept(after.findings, (*kept.left_out, *after.left_out))
        return kept


class Baselines:
    """Leaves out what is in the baselines: in one given file, or for each finding in that of its configuration."""

    def __init__(self, resolver: Resolver, given: Path | None = None) -> None:
        self._resolver = resolver
        self._given = given
        self._read: dict[Path, Baseline | None] = {}

    def of(self, path: Path) -> Baseline | None:
        """The baseline for a file; None where there is none. Raises BaselineError for a broken one."""
        settings = self._resolver.settings_for(path.parent)
        file = self._given or settings.baseline_file
        if file not in self._read:
            found = read_baseline(file)
            if found is None and (self._given is not None or settings.baseline is not None):
                raise BaselineError(f"{file}: no such baseline; write it with `torchmemlint baseline create`")
            self._read[file] = found
        return self._read[file]

    def read(self, files: Iterable[Path]) -> bool:
        """Read all those for some files: are there any? Raises BaselineError."""
        found = [self.of(file) for file in {file.parent: file for file in files}.values()]
        return any(baseline is not None for baseline in found)

    def sift(self, findings: Sequence[Finding], files: Collection[Path], sources: Sources) -> Kept:
        """As `Sieve.sift`."""
        compared = self.compare(findings, files, sources)
        known = {id(finding) for _, sifted in compared for finding, _ in sifted.known}
        left_out = [
            LeftOut(len(sifted.known), f"in {baseline.file.name}", len(sifted.gone))
            for baseline, sifted in compared
            if sifted.known or sifted.gone
        ]
        return Kept(tuple(finding for finding in findings if id(finding) not in known), tuple(left_out))

    def compare(
        self, findings: Sequence[Finding], files: Collection[Path], sources: Sources
    ) -> list[tuple[Baseline, Sifted]]:
        """Each baseline with what became of it: `gone` has only what is certain not to be found any more."""
        groups: dict[Path, tuple[Baseline, list[Finding]]] = {}
        known = [] if self._given is None else [self._given / "-"]  # though there be no file to check
        for file in {file.parent: file for file in (*known, *files)}.values():
            baseline = self.of(file)
            if baseline is not None:
                groups.setdefault(baseline.file, (baseline, []))
        for finding in findings:
            baseline = self.of(finding.filename)
            if baseline is not None:
                groups[baseline.file][1].append(finding)
        scope_of = scopes_of(sources)
        compared = []
        for baseline, found in groups.values():
            seen = _Seen(baseline, files, self._resolver)
            sifted = sift(found, baseline, scope_of, lends=seen)
            gone = tuple(entry for entry in sifted.gone if seen(entry.path) and seen.ran(entry))
            compared.append((baseline, replace(sifted, gone=gone)))
        return compared


class _Seen:
    """Is a file of a baseline no longer there, or was it looked at?"""

    def __init__(self, baseline: Baseline, files: Iterable[Path], resolver: Resolver) -> None:
        self._baseline = baseline
        self._files = files
        self._resolver = resolver
        self._names: frozenset[str] | None = None
        self._known: dict[str, bool] = {}

    def __call__(self, path: str) -> bool:
        if path not in self._known:
            if self._names is None:
                self._names = frozenset(map(self._baseline.path_of, self._files))
            self._known[path] = path in self._names or not self._place(path).exists()
        return self._known[path]

    def ran(self, entry: Entry) -> bool:
        """Would the rule have spoken in this file?"""
        place = self._place(entry.path)
        settings: Settings = self._resolver.settings_for(place.parent)
        return entry.rule in settings.rules_for(str(place))

    def _place(self, path: str) -> Path:
        return self._baseline.file.absolute().parent / path


class Spared:
    """Findings of one file that are to stay as they are while others are mended."""

    def __init__(self, path: Path, entries: Iterable[Entry]) -> None:
        self._baseline = Baseline(path.parent / FOLDER, tuple(entries))

    def without(self, findings: Sequence[Finding], text: str) -> list[Finding]:
        """The others, of any later state of the file."""
        scopes = Scopes(text)
        sifted = sift(findings, self._baseline, lambda finding: scopes.at(finding.span.start.row), lends=bool)
        return list(sifted.new)


FOLDER = "-"


def spared(path: Path, findings: Iterable[Finding], sources: Sources) -> tuple[Entry, ...]:
    """What tells these findings of a file from its others, later."""
    baseline, scope_of = Baseline(path.parent / FOLDER), scopes_of(sources)
    return tuple(baseline.entry(replace(finding, measured=None), scope_of(finding)) for finding in findings)


def scopes_of(sources: Sources) -> Callable[[Finding], str]:
    """Tells where in its file a finding stands; a file is parsed when the first of its findings is asked about."""
    known: dict[Path, Scopes] = {}

    def scope_of(finding: Finding) -> str:
        path = finding.filename
        if path not in known:
            known[path] = Scopes("\n".join(sources(path)))
        return known[path].at(finding.span.start.row)

    return scope_of
