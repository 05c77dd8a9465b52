"""What the baselines of a folder know, held against one file at a time."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from torchmemlint.baseline import Baseline, Entry, read_baseline, sift
from torchmemlint.config.settings import Settings
from torchmemlint.findings import Finding
from torchmemlint.fingerprints import core
from torchmemlint.syntax.scopes import Scopes


class KnownFindings:
    """Leaves out what a baseline knows. Each file's is the one of its settings, read anew when it changed."""

    def __init__(self, settings_for: Callable[[Path], Settings]) -> None:
        self._settings_for = settings_for
        self._indexes: dict[Path, tuple[tuple[int, int], _Index]] = {}

    def read(self, path: Path) -> None:
        """Raise BaselineError where the baseline for a file cannot be read."""
        self._index(path)

    def without(self, findings: Sequence[Finding], path: Path, text: Callable[[], str]) -> tuple[Finding, ...]:
        """The findings of a file that are not known. Raises BaselineError for a baseline that cannot be read.

        Of the other files only those that are gone lend their entries: what is in the others, nobody has looked.
        """
        index = self._index(path) if findings else None
        if index is None:
            return tuple(findings)
        about = index.about(findings, path)
        scopes: list[Scopes] = []

        def scope_of(finding: Finding) -> str:
            if not scopes:
                scopes.append(Scopes(text()))
            return scopes[0].at(finding.span.start.row)

        folder, own = about.file.parent, about.path_of(path)
        return sift(findings, about, scope_of, lends=lambda name: name == own or not (folder / name).exists()).new

    def _index(self, path: Path) -> _Index | None:
        file = self._settings_for(path.parent).baseline_file
        try:
            told = os.stat(file)  # noqa: PTH116 (asked with each edit)
        except OSError:
            self._indexes.pop(file, None)
            return None
        stamp = told.st_mtime_ns, told.st_size
        known = self._indexes.get(file)
        if known is None or known[0] != stamp:
            baseline = read_baseline(file)
            if baseline is None:
                return None
            known = self._indexes[file] = (stamp, _Index(baseline))
        return known[1]


class _Index:
    """A baseline whose entries are found by what they may stand for."""

    def __init__(self, baseline: Baseline) -> None:
        self._baseline = baseline
        self._by_core: defaultdict[str, list[Entry]] = defaultdict(list)
        self._by_path: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in baseline.entries:
            self._by_core[core(entry.fingerprint)].append(entry)
            self._by_path[entry.path].append(entry)

    def about(self, findings: Sequence[Finding], path: Path) -> Baseline:
        """The part of the baseline that may be about findings of a file."""
        own = self._baseline.path_of(path)
        cores = dict.fromkeys(core(finding.fingerprint) for finding in findings)
        others = (entry for mark in cores for entry in self._by_core.get(mark, ()) if entry.path != own)
        return replace(self._baseline, entries=(*self._by_path.get(own, ()), *others))
