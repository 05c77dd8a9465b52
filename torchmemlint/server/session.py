"""What the server knows, and its answers to "what is wrong with this text now?"."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from torchmemlint.config.formatting import formatting
from torchmemlint.engine.one_file import (
    UNREADABLE,
    Profile,
    Reported,
    is_concerned,
    is_passed_over,
    is_relevant,
    of_unreadable_cells,
    report_of,
    without_rules,
)
from torchmemlint.engine.runner import profile_for
from torchmemlint.findings import Finding, Position, Span
from torchmemlint.fixes.apply import FixResult, fix_text
from torchmemlint.fixes.graphs import Arrivals
from torchmemlint.fixes.tested import gradient_tests
from torchmemlint.flow.project import Project
from torchmemlint.immutable import immutable
from torchmemlint.knowledge.contracts import contracts
from torchmemlint.server.documents import PYTHON, Documents, path_of
from torchmemlint.server.files import EditedFiles
from torchmemlint.server.folders import Folder, Folders
from torchmemlint.server.worker import Pulse, Stopped, Worker
from torchmemlint.source.cells import CellProgram, program_of
from torchmemlint.source.sequences import common_ends

log = logging.getLogger("torchmemlint.server")
T = TypeVar("T")

FIRST, SECOND = 0, 1  # priorities: what is being edited, what depends on it
_COLLECT_EVERY = 20  # checks, where they follow each other without a pause


@immutable()
class Unit:
    """What is checked as a whole: a file or a notebook, as it stands in the editor."""

    uri: str
    path: Path  # where it lies, or would
    text: str
    texts: tuple[str, ...]  # of the documents that it is made of: itself, or a notebook's cells
    uris: tuple[str, ...]  # of these documents
    cells: CellProgram | None = None  # of a notebook

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for equal states of its documents."""
        return self.texts


@immutable()
class Checked:
    """What a check of a unit came to."""

    unit: Unit
    findings: tuple[Finding, ...]
    kept: tuple[Finding, ...] = ()  # of an earlier state, where the text cannot be read just now
    depends_on: frozenset[Path] = frozenset()  # files that had a say in it
    searched: bool = False  # every file of the project had
    seconds: float = 0.0
    number: int = 0  # of the check; differs where the answer may differ
    failed: bool = False  # the linter itself did

    @property
    def all(self) -> tuple[Finding, ...]:
        """What is to be shown."""
        return (*self.findings, *self.kept)


@dataclass(slots=True)
class _Known:
    """The last answer for a unit, and the one being worked on."""

    checked: Checked | None = None
    good: Checked | None = None  # the last one of a text that could be read
    stale: bool = True
    pending: asyncio.Future[Checked] | None = None
    pending_key: tuple[str, ...] = ()


class Session:
    """Folders, documents and what is known of them. Its methods belong to the event loop's thread."""

    def __init__(self) -> None:
        self.folders = Folders()
        self.documents = Documents()
        self.worker = Worker(rest=self._collect)
        self._known: dict[str, _Known] = {}
        self._numbers = itertools.count(1)
        self._checks = 0

    # -- questions -----------------------------------------------------------------------------------------------

    def unit(self, uri: str) -> Unit | None:
        """The file or notebook that a document is, or is a part of, as it stands; None for one that is not open."""
        notebook = self.documents.notebook(self.documents.owner(uri))
        if notebook is not None:
            cells = [cell for cell in map(self.documents.get, notebook.cells) if cell is not None]
            cells = [cell for cell in cells if cell.language == PYTHON]
            texts = tuple(cell.text for cell in cells)
            path = path_of(notebook.uri) or _unsaved(notebook.uri)
            program = program_of(texts)
            return Unit(notebook.uri, path, program.text, texts, tuple(cell.uri for cell in cells), program)
        document = self.documents.get(uri)
        if document is None:
            return None
        path = path_of(uri) or _unsaved(uri)
        return Unit(uri, path, document.text.removeprefix("\ufeff"), (document.text,), (uri,))

    def last(self, uri: str) -> Checked | None:
        """The last answer for a document, of whatever state of it."""
        known = self._known.get(self.documents.owner(uri))
        return known.checked if known is not None else None

    def is_stale(self, uri: str) -> bool:
        """Is the last answer for a document no longer about what stands there?"""
        known = self._known.get(uri)
        unit = self.unit(uri)
        if known is None or known.checked is None or unit is None:
            return True
        return known.stale or known.checked.unit.key != unit.key

    async def check(self, uri: str, priority: int = FIRST) -> Checked | None:
        """What there is to say about a document as it stands now; None where it was closed meanwhile."""
        owner = self.documents.owner(uri)
        while (unit := self.unit(owner)) is not None:
            known = self._known.setdefault(owner, _Known())
            if not self.is_stale(owner):
                return known.checked
            if known.pending is None or known.pending.done() or known.pending_key != unit.key or known.stale:
                known.stale = False
                known.pending_key = unit.key
                known.pending = self.worker.submit(owner, priority, self._job(unit, known))
            pending = known.pending
            await asyncio.wait([pending])
            if pending.cancelled():
                continue  # something newer is on its way
            checked = pending.result()
            if known.pending is pending:
                known.checked = checked
                known.pending = None
                if not checked.kept and not _is_unreadable(checked.findings):
                    known.good = checked
            if not self.is_stale(owner):
                return known.checked
        return None

    async def fix(self, uri: str, wanted: Callable[[Finding], bool], *, unsafe: bool) -> tuple[Unit, FixResult] | None:
        """The text of a document after the fixes of the wanted findings, each proven as `--fix` does."""
        checked = await self.check(uri)
        if checked is None:
            return None
        unit = checked.unit

        def job(pulse: Pulse) -> FixResult:
            return self._fix(unit, checked.findings, wanted, unsafe=unsafe, pulse=pulse)

        future = self.worker.submit(f"fix {next(self._numbers)}", FIRST, job)
        await asyncio.wait([future])
        return None if future.cancelled() else (unit, future.result())

    # -- what happens to the documents ---------------------------------------------------------------------------

    def touched(self, path: Path | None, *, on_disk: bool = False) -> list[str]:
        """A file changed, in the editor or on the disk: the open documents whose answers depend on it."""
        affected = []
        for uri, known in self._known.items():
            checked = known.checked
            if known.pending is not None and not known.pending.done():
                known.stale = True  # it may have read the file already
            if checked is None or known.stale:
                continue
            own = checked.unit.path
            if path is None or (path != own and (path in checked.depends_on or checked.searched)):
                known.stale = True
                affected.append(uri)
            elif on_disk and path != own and self.folders.of(path) is self.folders.of(own):
                known.stale = True  # it may be found now by a name that led nowhere
                affected.append(uri)
        return affected

    def closed(self, uri: str) -> None:
        """A document is no longer open."""
        self._known.pop(uri, None)
        self.worker.forget(uri)

    # -- on the worker's thread ----------------------------------------------------------------------------------

    def _job(self, unit: Unit, known: _Known) -> Callable[[Pulse], Checked]:
        good = known.good

        def job(pulse: Pulse) -> Checked:
            try:
                return self._check(unit, good, pulse)
            except Stopped:
                raise
            except Exception:
                log.exception("internal error while checking %s; please report it", unit.path)
                kept = moved(good.findings, good.unit.text, unit.text) if good is not None else ()
                return Checked(unit, (), tuple(kept), number=next(self._numbers), failed=True)

        return job

    def _check(self, unit: Unit, good: Checked | None, pulse: Pulse) -> Checked:
        folder = self.folders.of(unit.path)
        number = next(self._numbers)
        if not folder.settings.enable or folder.leaves_out(unit.path):
            return Checked(unit, (), number=number)
        start = time.perf_counter()
        profile = profile_for(folder.settings_for(unit.path.parent), unit.path)
        files = folder.files(profile.root or unit.path.parent)
        found = tuple(self._reported(unit, unit.text, profile, files, pulse).findings)
        findings, kept = _shown(unit, found, good, folder)
        seconds = time.perf_counter() - start
        self._tidy()
        log.debug("checked %s: %d findings in %.0f ms", unit.path, len(findings), seconds * 1000)
        asked, searched = frozenset(files.asked), files.texts.was_asked
        return Checked(unit, tuple(findings), kept, asked, searched, seconds, number)

    def _reported(
        self,
        unit: Unit,
        text: str,
        profile: Profile,
        files: EditedFiles,
        pulse: Pulse,
        *,
        comparing: bool = False,
    ) -> Reported:
        pulse()
        data = text.encode("utf-8", "surrogatepass")
        files.begin(dict(self.documents.files()))
        project = Project(profile.root or unit.path.parent, contracts(profile.contracts), files)
        found: Reported | None = None
        try:
            relevant = is_relevant(data, profile.contracts) or is_concerned(data, unit.path, profile, project)
            if is_passed_over(data, relevant):
                found = Reported([])  # as in a run
                return found
            found = report_of(
                text, unit.path, profile, relevant=relevant, around=project, pulse=pulse, comparing=comparing
            )
        finally:
            files.end(whole=found is not None and not _is_unreadable(found.findings))
        return found

    def _fix(
        self,
        unit: Unit,
        findings: Sequence[Finding],
        wanted: Callable[[Finding], bool],
        *,
        unsafe: bool,
        pulse: Pulse,
    ) -> FixResult:
        folder = self.folders.of(unit.path)
        profile = profile_for(folder.settings_for(unit.path.parent), unit.path)
        files = folder.files(profile.root or unit.path.parent)

        @cache
        def reported(text: str) -> Reported:
            return self._reported(unit, text, profile, files, pulse, comparing=True)

        def recheck(text: str) -> tuple[Finding, ...]:
            return folder.new_among(tuple(reported(text).findings), unit.path, lambda: text)

        def arriving(text: str) -> Arrivals:
            if text == unit.text:
                return self._reported(unit, text, without_rules(profile), files, pulse, comparing=True).arriving
            return reported(text).arriving

        @cache
        def tests() -> dict[str, str]:
            return gradient_tests(profile.root) if profile.root is not None else {}

        return fix_text(
            unit.text,
            findings,
            recheck,
            unsafe=unsafe,
            wanted=wanted,
            arriving=arriving,
            formatting=formatting(unit.path.parent),
            tested=lambda name: tests().get(name),
        )

    def _tidy(self) -> None:
        self._checks += 1
        if self._checks >= _COLLECT_EVERY:
            self._collect()

    def _collect(self) -> None:
        """Collect garbage, between checks or when there is nothing to do: the server keeps Python from doing so in the
        middle of a check, which would take a quarter longer for all the trees that are kept.
        """
        self._checks = 0
        gc.collect()


def moved(findings: Sequence[Finding], before: str, after: str) -> list[Finding]:
    """Findings about an older text, where they stand now: those on rows that an edit has left alone."""
    old, new = before.split("\n"), after.split("\n")
    head, tail = common_ends(old, new)
    shift = len(new) - len(old)
    kept = []
    for finding in findings:
        rows = finding.span
        if rows.end.row <= head:
            kept.append(finding)
        elif rows.start.row > len(old) - tail:
            kept.append(replace(finding, span=_shifted(rows, shift), statement=_shifted(finding.statement, shift)))
    # Their other places and their fixes are about the older text.
    return [replace(finding, evidence=(), fix=None) for finding in kept]


def _shifted(span: Span, rows: int) -> Span:
    start, end = span.start, span.end
    return Span(Position(start.row + rows, start.column), Position(end.row + rows, end.column))


def _is_unreadable(findings: Sequence[Finding]) -> bool:
    return any(finding.code == UNREADABLE for finding in findings)


def _shown(
    unit: Unit, findings: Sequence[Finding], good: Checked | None, folder: Folder
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """What is shown of what was found, and what is kept of an earlier text where this one cannot be read."""
    if unit.cells is not None:
        from torchmemlint.engine import notebooks

        findings = notebooks.within_cells(findings, unit.text, unit.cells)
    if not _is_unreadable(findings):
        new = folder.new_among(findings, unit.path, lambda: unit.text)
        return (*(_with_figures(new, folder) if new else ()), *_of_unreadable_cells(unit, folder)), ()
    kept = tuple(moved(good.findings, good.unit.text, unit.text)) if good is not None else ()
    shown = folder.settings.show_syntax_errors and unit.cells is None
    return (tuple(findings) if shown else ()), kept


def _of_unreadable_cells(unit: Unit, folder: Folder) -> list[Finding]:
    """What is said of those cells of a notebook that are passed over, while the others are checked."""
    if unit.cells is None or not unit.cells.problems or not folder.settings.show_syntax_errors:
        return []
    profile = profile_for(folder.settings_for(unit.path.parent), unit.path)
    if not is_relevant(unit.text.encode("utf-8", "surrogatepass"), profile.contracts):
        return []
    return of_unreadable_cells(unit.cells, unit.path, profile)


def _with_figures(findings: Sequence[Finding], folder: Folder) -> tuple[Finding, ...]:
    from torchmemlint.engine import figures

    return figures.attach(findings, folder.settings_for)[0]


def _unsaved(uri: str) -> Path:
    """A path for a text that was never saved: in the working directory, so that its configuration counts."""
    return Path.cwd() / (uri.rpartition("/")[2].rpartition(":")[2] or "untitled")
