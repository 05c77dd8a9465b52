"""Findings in the files of the workspace that are not open, looked for in processes beside the server."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import multiprocessing
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from torchmemlint.config.errors import ConfigError
from torchmemlint.engine import context
from torchmemlint.engine.one_file import Profile, check_file
from torchmemlint.engine.runner import profile_for
from torchmemlint.findings import Finding
from torchmemlint.server.documents import uri_of
from torchmemlint.server.folders import Folder
from torchmemlint.source.decoding import UnreadableFile, read
from torchmemlint.source.discovery import discover
from torchmemlint.source.loading import is_notebook

if TYPE_CHECKING:
    from torchmemlint.server.app import Server

log = logging.getLogger("torchmemlint.server")

Job = tuple[Path, Profile]

_BATCH = 16  # files that a process checks before it tells
_HOLD = 60.0  # seconds that a question to which there is no news is kept waiting
_QUIET = 1.0  # seconds without a further change before changed files are looked at


class WorkspaceCheck:
    """Keeps the findings of all files in those folders whose settings ask for it (`workspaceDiagnostics`: `all`)."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._findings: dict[Path, tuple[Finding, ...]] = {}
        self._numbers: dict[Path, int] = {}  # of the state of a file's findings
        self._next = itertools.count(1)
        self._task: asyncio.Task[None] | None = None
        self._pool: ProcessPoolExecutor | None = None
        self._changed: set[Path] = set()
        self._news = asyncio.Event()

    def begin(self) -> None:
        """Look at everything, if any folder wants it."""
        self._start(None, _QUIET)  # what is open comes first

    def touched(self, path: Path) -> None:
        """A file changed on the disk: look at it again, and at the files that name it."""
        if self._wanting():
            self._changed.add(path)
            if self._task is None or self._task.done():
                self._start(self._changed, _QUIET)

    def end(self) -> None:
        """Stop. The event loop may be gone by now."""
        if self._task is not None and not self._task.done():
            with contextlib.suppress(RuntimeError):
                self._task.cancel()
        if self._pool is not None:
            _stop(self._pool)

    def of(self, path: Path) -> tuple[Finding, ...]:
        """The findings of a file, as far as they are known."""
        return self._findings.get(path, ())

    async def report(self, previous: Mapping[str, str]) -> lsp.WorkspaceDiagnosticReport:
        """What is new for a client that has seen `previous` (result identifiers by URI); waits until something is."""
        until = asyncio.get_running_loop().time() + _HOLD
        while not (items := self._items(previous)) and (left := until - asyncio.get_running_loop().time()) > 0:
            self._news.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._news.wait(), left)
        return lsp.WorkspaceDiagnosticReport(items)

    # ------------------------------------------------------------------------------------------------------------

    def _wanting(self) -> list[Folder]:
        folders = self._server.session.folders
        return [one for one in folders if one.settings.enable and one.settings.workspace_diagnostics == "all"]

    def _items(self, previous: Mapping[str, str]) -> list[lsp.WorkspaceDocumentDiagnosticReport]:
        opened = {path for path, _ in self._server.session.documents.files()}
        items: list[lsp.WorkspaceDocumentDiagnosticReport] = []
        for path, number in self._numbers.items():
            uri, result = uri_of(path), str(number)
            if path not in opened and previous.get(uri) != result:
                found = self._server.presenter.of_file(self.of(path), path)
                items.append(lsp.WorkspaceFullDocumentDiagnosticReport(uri=uri, items=found, result_id=result))
        return items

    def _start(self, paths: set[Path] | None, delay: float) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.create_task(self._run(paths, delay))

    async def _run(self, paths: set[Path] | None, delay: float) -> None:
        await asyncio.sleep(delay)
        try:
            jobs = await asyncio.to_thread(self._jobs, None if paths is None else frozenset(paths))
            if paths is not None:
                paths.clear()
            else:
                self._forget_others({path for path, _ in jobs})
            if jobs:
                await self._check(jobs)
        except ConfigError as error:
            log.warning("the workspace is not checked: %s", error)
        except Exception:
            log.exception("internal error while checking the workspace; please report it")

    def _jobs(self, paths: frozenset[Path] | None) -> list[Job]:
        """The files to look at; of a changed file also those in which its name stands."""
        jobs = []
        for folder in self._wanting():
            resolver = folder.resolver()
            found = discover([folder.path], resolver.settings_for)
            files = (
                one for one in found.files if not is_notebook(one)
            )  # their cells have addresses when they are open
            chosen = (one for one in files if paths is None or one in paths or _names_any(one, paths))
            jobs += [(path, profile_for(resolver.settings_for(path.parent), path)) for path in chosen]
        return jobs

    def _forget_others(self, known: set[Path]) -> None:
        """Files that are no longer to be checked have no findings."""
        for path in [path for path in self._findings if path not in known]:
            self._take(path, ())

    async def _check(self, jobs: Sequence[Job]) -> None:
        total = len(jobs)
        loop = asyncio.get_running_loop()
        batches = [jobs[start : start + _BATCH] for start in range(0, total, _BATCH)]
        spawn = multiprocessing.get_context("spawn")  # this process has threads
        workers = max(1, min(len(batches), (os.cpu_count() or 2) - 1))
        pool = self._pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_settle)
        done = 0
        try:
            async with self._progress(total) as progress:
                waiting = {loop.run_in_executor(pool, _check_batch, list(batch)) for batch in batches}
                while waiting:
                    finished, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for one in finished:
                        for path, findings in one.result():
                            self._take(path, self._new_among(findings, path))
                            done += 1
                    progress(done)
        finally:
            _stop(pool)

    def _new_among(self, findings: tuple[Finding, ...], path: Path) -> tuple[Finding, ...]:
        folder = self._server.session.folders.of(path)
        return folder.new_among(findings, path, lambda: self._server.text_of(path))

    def _take(self, path: Path, findings: tuple[Finding, ...]) -> None:
        if path in self._findings and self._findings[path] == findings:
            return
        was_empty = not self._findings.get(path)
        self._findings[path] = findings
        if was_empty and not findings:
            return
        self._numbers[path] = next(self._next)
        self._news.set()
        opened = any(path == file for file, _ in self._server.session.documents.files())
        if not self._server.pulls and not opened:
            self._server.publish_file(path, findings)

    @contextlib.asynccontextmanager
    async def _progress(self, total: int) -> AsyncIterator[Callable[[int], None]]:
        """A progress bar in the client, where it has one."""
        window = self._server.client_capabilities.window
        if window is None or not window.work_done_progress:
            yield lambda done: None
            return
        bar, token = self._server.work_done_progress, f"torchmemlint-{next(self._next)}"
        try:
            await bar.create_async(token)
        except Exception:  # noqa: BLE001 (the client declined)
            yield lambda done: None
            return
        bar.begin(token, lsp.WorkDoneProgressBegin("torchmemlint", message=f"0 of {total} files", percentage=0))

        def progress(done: int) -> None:
            report = lsp.WorkDoneProgressReport(message=f"{done} of {total} files", percentage=done * 100 // total)
            bar.report(token, report)

        try:
            yield progress
        finally:
            bar.end(token, lsp.WorkDoneProgressEnd(f"{total} files"))


def _stop(pool: ProcessPoolExecutor) -> None:
    """End a pool at once: what its processes have in hand is not wanted any more."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()


def _settle() -> None:
    """In a new process: the editor and its server come first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(10)


def _check_batch(jobs: list[Job]) -> list[tuple[Path, tuple[Finding, ...]]]:
    """In a process of the pool: the findings of some files, as they lie on the disk."""
    context.forget()
    results = []
    for path, profile in jobs:
        result = check_file(path, profile)
        if result.error is not None:
            log.warning("%s: internal error: %s", path, result.error)
        results.append((path, result.findings))
    return results


def _names_any(path: Path, others: Iterable[Path]) -> bool:
    """Does a file's text name one of these modules?"""
    words = {other.parent.name if other.stem == "__init__" else other.stem for other in others}
    try:
        data = read(path)
    except UnreadableFile:
        return False
    return any(re.search(rb"\b%s\b" % re.escape(word.encode()), data) for word in words if word.encode() in data)
