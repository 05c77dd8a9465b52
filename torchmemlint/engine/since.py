"""Findings that were not there yet at a revision.

Not the rows that a change touched decide, but what was found in the changed files as they were: so a formatter or a
move makes nothing new, and a deleted `.detach()` does, though it leaves no row behind.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from torchmemlint.baseline import Baseline, sift
from torchmemlint.engine.one_file import FileResult
from torchmemlint.engine.run import LeftOut
from torchmemlint.engine.sieve import Kept, Sources, scopes_of
from torchmemlint.findings import Evidence, Finding
from torchmemlint.source.decoding import UnreadableFile, lines_of
from torchmemlint.source.discovery import SUFFIXES
from torchmemlint.source.loading import load
from torchmemlint.source.revisions import Changes

CheckTexts = Callable[[Sequence[tuple[Path, bytes]]], Sequence[FileResult]]
_HEADER = re.compile(r"(?:async\s+)?(?:for|while|with|def|class|if|elif|try|match|case)\b")


class Since:
    """Leaves out what was found before. `check` gives the findings of files as they were."""

    def __init__(self, changes: Changes, check: CheckTexts) -> None:
        self._changes = changes
        self._check = check
        self._rows: dict[Path, frozenset[int] | None] = {}

    def sift(self, findings: Sequence[Finding], files: Collection[Path], sources: Sources) -> Kept:
        """As `Sieve.sift`."""
        in_question = [finding for finding in findings if self._may_be_new(finding)]
        new = {id(finding) for finding in self._not_found_before(in_question, files, sources)}
        new |= {id(finding) for finding in findings if self._rests_on_a_change(finding, sources)}
        kept = tuple(finding for finding in findings if id(finding) in new)
        older = len(findings) - len(kept)
        return Kept(kept, (LeftOut(older, f"not new since {self._changes.revision}"),) if older else ())

    def _may_be_new(self, finding: Finding) -> bool:
        """Does it stand in a file that changed, or that git does not know?"""
        name = self._changes.name_of(finding.filename)
        if name is None or self._changes.is_foreign(name):
            return False
        return name in self._changes.files or name not in self._changes.tracked

    def _not_found_before(
        self, findings: Sequence[Finding], files: Collection[Path], sources: Sources
    ) -> Sequence[Finding]:
        if not findings:
            return ()
        named = {self._changes.name_of(file): file for file in files}  # as they are called in this run
        changed = (change for change in self._changes.files.values() if change.path.endswith(SUFFIXES))
        before = {
            named.get(change.path, self._changes.top / change.path): data
            for change, data in self._changes.contents(changed)
        }
        results = self._check(list(before.items()))
        old = [finding for result in results for finding in result.findings]

        def then(path: Path) -> list[str]:
            try:
                return lines_of(load(before[path], path).text)
            except UnreadableFile:
                return []

        known, scope_of = Baseline(self._changes.top / "-"), scopes_of(then)
        known = replace(known, entries=tuple(known.entry(finding, scope_of(finding)) for finding in old))
        return sift(findings, known, scopes_of(sources), lends=lambda path: True).new

    # -- evidence in other files ---------------------------------------------------------------------------------------

    def _rests_on_a_change(self, finding: Finding, sources: Sources) -> bool:
        own = self._changes.name_of(finding.filename)
        if own is None or self._changes.is_foreign(own):
            return False
        return any(
            evidence.filename is not None
            and evidence.filename != finding.filename
            and self._is_changed(evidence, evidence.filename, sources)
            for evidence in finding.evidence
        )

    def _is_changed(self, evidence: Evidence, path: Path, sources: Sources) -> bool:
        if path not in self._rows:
            self._rows[path] = self._changed_rows(path, sources)
        rows = self._rows[path]
        if rows is None:
            return True
        start, end = evidence.span.start, evidence.span.end
        lines = sources(path)
        line = lines[start.row - 1] if start.row <= len(lines) else ""
        last = start.row if _HEADER.match(line[start.column - 1 :]) else end.row  # not all that is in a loop
        return not rows.isdisjoint(range(start.row, last + 1))

    def _changed_rows(self, path: Path, sources: Sources) -> frozenset[int] | None:
        """The rows of a file that are not as they were; None for all of them."""
        name = self._changes.name_of(path)
        if name is None or self._changes.is_foreign(name):
            return frozenset()
        if name not in self._changes.tracked:
            return None
        change = self._changes.files.get(name)
        if change is None:
            return frozenset()
        contents = [data for _, data in self._changes.contents([change])]
        if not contents:
            return None
        try:
            before = lines_of(load(contents[0], path).text)
        except UnreadableFile:
            return None
        matcher = difflib.SequenceMatcher(None, before, sources(path), autojunk=False)
        changed = (range(b, end) for tag, _, _, b, end in matcher.get_opcodes() if tag in ("insert", "replace"))
        return frozenset(row + 1 for rows in changed for row in rows)
