"""Which results of earlier runs still hold, and what of this run is worth keeping.

A result holds as long as the file is the same, the settings and the linter are, and so is all that the analysis asked
of the project: the text of the files that it read, which of the modules that it looked for there are, and where else
the phrases stand that it searched for. A changed helper thus has its users checked again, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torchmemlint
from torchmemlint.engine.cache.codec import dump, load
from torchmemlint.engine.cache.snapshot import Snapshot
from torchmemlint.engine.cache.store import Row, Store, StoreError, bound_all, store_path
from torchmemlint.engine.installation import own_files
from torchmemlint.engine.one_file import FileResult, Profile, is_to_change
from torchmemlint.findings import Finding
from torchmemlint.flow.names.needs import Needs
from torchmemlint.rules import extensions

_AT_ONCE = 100  # results put into the store: they are long as text, and other runs wait meanwhile


class Results:
    """Those of one project. A store that cannot be used is no error: `complaint` then says why."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.complaint = ""
        self._folder = folder
        self._store: Store | None = None
        self._snapshot = Snapshot(root, {})
        self._rows: dict[str, dict[str, Row]] = {}
        self._used: list[tuple[str, str]] = []
        self._added: list[tuple[FileResult, Profile]] = []
        with self._complaining():
            self._store = Store(store_path(folder, root), root)
            self._snapshot = Snapshot(root, self._store.stamps())

    def has_changed(self, path: Path) -> bool:
        """Has no earlier run seen the file as it is? What one found need not hold: other files may have changed."""
        return self._snapshot.has_changed(str(path))

    def find(self, path: Path, profile: Profile) -> FileResult | None:
        """What an earlier run found in a file, if that still holds."""
        circumstances = _circumstances(profile)
        row = self._of(circumstances).get(str(path))
        if row is None or row.digest != self._snapshot.digest(row.path):
            return None
        try:
            if not self._hold(row.needs):
                return None
            findings = load(tuple[Finding, ...], row.result["findings"])
            skipped = load(bool, row.result["skipped"])
            unsure, partly = load(int, row.result["unsure"]), load(bool, row.result["partly"])
        except (TypeError, ValueError, KeyError, AttributeError):  # written by another hand
            return None
        if any(is_to_change(finding, profile) for finding in findings):
            return None
        self._used.append((row.path, circumstances))
        return FileResult(path, findings, skipped, from_cache=True, unsure=unsure, partly=partly)

    def add(self, result: FileResult, profile: Profile) -> None:
        """Take in what this run has found in a file."""
        self._added.append((result, profile))

    def close(self) -> None:
        """Write down what was added, and let go of the store."""
        if self._store is None:
            return
        with self._complaining(), contextlib.closing(self._store) as store:
            for first in range(0, len(self._added), _AT_ONCE):
                made = (self._row(*added) for added in self._added[first : first + _AT_ONCE])
                store.keep([row for row in made if row is not None])
            store.keep((), self._snapshot.fresh, self._used)
            if self._added:
                bound_all(self._folder)

    def _of(self, circumstances: str) -> Mapping[str, Row]:
        if circumstances not in self._rows:
            self._rows[circumstances] = {}
            if self._store is not None:
                with self._complaining():
                    self._rows[circumstances] = self._store.rows(circumstances)
        return self._rows[circumstances]

    def _hold(self, needs: Mapping[str, Any]) -> bool:
        now = self._snapshot
        if any(now.digest(path) != digest for path, digest in needs["files"].items()):
            return False
        if not (all(map(now.has, needs["there"])) and not any(map(now.has, needs["not there"]))):
            return False
        phrases = needs["phrases"]
        if not phrases or now.everything() == needs["everything"]:
            return True
        return all(now.mentions(phrase) == found for phrase, found in phrases.items())

    def _row(self, result: FileResult, profile: Profile) -> Row | None:
        if result.error is not None or result.fixed is not None or result.digest is None:
            return None
        now, path, asked = self._snapshot, str(result.path), result.needs or Needs()
        if not all(now.is_settled(file) for file in (path, *asked.files)):
            return None
        needs = {
            "files": {file: now.digest(file) for file in asked.files},
            "there": [one for one in asked.sought if now.has(one)],
            "not there": [one for one in asked.sought if not now.has(one)],
            "phrases": {phrase: now.mentions(phrase) for phrase in asked.phrases},
            "everything": now.everything() if asked.phrases else "",
        }
        findings = [dump(replace(finding, measured=None)) for finding in result.findings]
        kept = {name: getattr(result, name) for name in ("skipped", "unsure", "partly")} | {"findings": findings}
        return Row(path, _circumstances(profile), result.digest, needs, kept)

    @contextlib.contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            self.complaint = str(error)
            self._store = None


@cache
def _circumstances(profile: Profile) -> str:
    """What findings depend on besides files: the settings, as far as they concern them, and the linter."""
    alike = (
        sorted(profile.codes),
        sorted((code, severity.value) for code, severity in profile.severities),
        str(profile.root),
        profile.target_torch,
        repr(profile.contracts),
        profile.noqa,
        profile.comments,
        [(code, applicability.value) for code, applicability in profile.trust],
        profile.confidence.value,
        profile.limits,
        extensions.stamps(profile.plugins),
        _linter(),
    )
    return hashlib.blake2b(repr(alike).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@cache
def _linter() -> tuple[object, ...]:
    """The version, and for a checkout that is being worked on, when its files changed."""
    from importlib.metadata import version

    files = sorted((entry.path, entry.stat().st_mtime_ns, entry.stat().st_size) for entry in own_files())
    return torchmemlint.__version__, version("libcst"), platform.python_implementation(), sys.version_info[:2], files
