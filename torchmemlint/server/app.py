"""The protocol's side of the server: each message to what answers it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import platform
import sys
import tempfile
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from torchmemlint import __version__
from torchmemlint.config import requirement, resolver
from torchmemlint.config.names import BASELINE
from torchmemlint.findings import Finding
from torchmemlint.server import handlers
from torchmemlint.server.actions import Actions
from torchmemlint.server.answering import Answering
from torchmemlint.server.configuration import problem_in
from torchmemlint.server.diagnostics import Presenter
from torchmemlint.server.documents import path_of, uri_of
from torchmemlint.server.folders import Folder
from torchmemlint.server.session import FIRST, SECOND, Checked, Session
from torchmemlint.server.settings import SECTION, ClientSettings, read_settings
from torchmemlint.server.workspace import WorkspaceCheck
from torchmemlint.source.decoding import UnreadableFile, decode, read

log = logging.getLogger("torchmemlint.server")

DELAY = 0.05  # seconds of quiet before what was typed is looked at
DELAY_OTHERS = 0.4  # before the other open documents that depend on it are
_MANY = 100  # futures of the library's
_SETTINGS = (*resolver.FILE_NAMES, ".gitignore", "torchmemlint-measured.json", BASELINE)
_WATCHED = (*_SETTINGS, *requirement.FILE_NAMES[1:], *requirement.PATTERNS)
_NOTEBOOKS = lsp.NotebookDocumentSyncOptions(
    notebook_selector=[
        lsp.NotebookDocumentFilterWithCells(
            notebook="jupyter-notebook", cells=[lsp.NotebookCellLanguage(language="python")]
        )
    ],
    save=True,
)


class Server(LanguageServer):
    """The language server. One session, for as long as the client lives."""

    def __init__(self) -> None:
        super().__init__("torchmemlint", __version__, notebook_document_sync=_NOTEBOOKS, protocol_cls=Answering)
        self.session = Session()
        self.presenter: Presenter
        self.actions: Actions
        self.everything = WorkspaceCheck(self)
        self.pulls = False  # the client asks for diagnostics; else they are sent
        self.unsaved: set[str] = set()  # documents that were changed since they were opened or saved
        self.answered: dict[str, Checked] = {}  # what a client that asks was told last, by document
        self._failed: set[str] = set()  # documents that the linter failed on
        self._pages: tempfile.TemporaryDirectory[str] | None = None  # that were shown
        self._soon: dict[str, asyncio.Task[None]] = {}
        self._problems: dict[Path, str] = {}  # configuration files that are shown as broken
        handlers.register(self)

    # -- the beginning -------------------------------------------------------------------------------------------

    def begin(self, params: lsp.InitializeParams) -> None:
        """Learn what the client can do and what it has open."""
        client = params.capabilities
        documents = client.text_document
        self.pulls = documents is not None and documents.diagnostic is not None
        encoding = str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding))
        self.presenter = Presenter(encoding, self.text_of, client)
        self.actions = Actions(self.session, self.presenter, client)
        options = params.initialization_options
        options = options if isinstance(options, dict) else {}
        settings, problems = read_settings(options.get("settings"), ClientSettings(), None)
        self.session.folders.configure(settings)
        folders = [folder.uri for folder in params.workspace_folders or ()]
        if not folders and (root := params.root_uri or (uri_of(Path(params.root_path)) if params.root_path else None)):
            folders = [root]
        for uri in folders:
            self.add_folder(uri)
        for own in options.get("workspaces") or ():
            if isinstance(own, dict) and (path := path_of(str(own.get("workspace")))) is not None:
                problems += self._configure(path, own)
        self._log_level(settings)
        self._complain(problems)

    async def begun(self) -> None:
        """Ask for what the client is to tell, and for the settings of each folder."""
        workspace = self.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace is not None else None
        registrations = []
        if watching is not None and watching.dynamic_registration:
            patterns = [f"**/{name}" for name in _WATCHED] + ["**/*.py", "**/*.pyi"]
            watchers = [lsp.FileSystemWatcher(pattern) for pattern in patterns]
            options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers)
            registrations.append(
                lsp.Registration("torchmemlint-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            )
        changing = workspace.did_change_configuration if workspace is not None else None
        if changing is not None and changing.dynamic_registration:
            section = lsp.DidChangeConfigurationRegistrationOptions(SECTION)
            registrations.append(
                lsp.Registration("torchmemlint-settings", lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, section)
            )
        if registrations:
            with contextlib.suppress(Exception):  # a client that says it can and then cannot
                await self.client_register_capability_async(lsp.RegistrationParams(registrations))
        await self.ask_for_settings()
        for folder in self.session.folders:
            self.show_problem(folder)
        self.everything.begin()

    def add_folder(self, uri: str) -> None:
        """A folder joins the workspace."""
        path = path_of(uri)
        if path is not None:
            self.session.folders.add(path)

    # -- settings ------------------------------------------------------------------------------------------------

    async def ask_for_settings(self) -> None:
        """The client's settings of each folder, where it can be asked."""
        workspace = self.client_capabilities.workspace
        if workspace is None or not workspace.configuration:
            return
        folders = list(self.session.folders)
        items = [lsp.ConfigurationItem(scope_uri=uri_of(folder.path), section=SECTION) for folder in folders]
        if not items:
            return
        try:
            given = await self.workspace_configuration_async(lsp.ConfigurationParams(items))
        except Exception:  # noqa: BLE001 (the settings stay as they are)
            log.warning("the client did not give its settings")
            return
        problems: list[str] = []
        for folder, settings in zip(folders, given, strict=False):
            if settings:
                problems += self._configure(folder.path, settings)
        self._complain(problems)

    def settings_changed(self, settings: object) -> None:
        """Settings for all folders, sent by the client."""
        given = settings.get(SECTION, settings) if isinstance(settings, dict) else None
        if given:
            found, problems = read_settings(given, self.session.folders.default, None)
            self.session.folders.configure(found)
            self._log_level(found)
            self._complain(problems)

    def _configure(self, path: Path, given: object) -> list[str]:
        folder = self.session.folders.get(path)
        if folder is None:
            return []
        settings, problems = read_settings(given, self.session.folders.default, path)
        if settings != folder.settings:
            folder.configure(settings)
        self._log_level(settings)
        return problems

    def _complain(self, problems: Iterable[str]) -> None:
        for problem in problems:
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, f"torchmemlint: {problem}"))

    def _log_level(self, settings: ClientSettings) -> None:
        log.setLevel(settings.log_level.upper())

    def show_problem(self, folder: Folder) -> None:
        """Show what is wrong with a folder's configuration files, or that nothing is any more."""
        folder.settings_for(folder.path)
        if folder.problem is None:
            folder.read_baseline()
        error = folder.problem
        broken = {error.file: error} if error is not None and error.file is not None else {}
        for file in [file for file in self._problems if file not in broken and folder.path in file.parents]:
            self._publish(self._problems.pop(file), [])
        for file, problem in broken.items():
            uri = self._problems.setdefault(file, uri_of(file))
            self._publish(uri, [problem_in(problem, file, self.text_of(file))])
        if error is not None and error.file is None:
            self._complain([str(error)])

    # -- checks --------------------------------------------------------------------------------------------------

    def text_of(self, path: Path) -> str:
        """The text of a file as it stands in the editor, or on the disk; empty where it cannot be read."""
        for file, text in self.session.documents.files():
            if file == path:
                return text
        try:
            return decode(read(path)).text
        except UnreadableFile:
            return ""

    def edited(self, uri: str, *, saved: bool = False) -> None:
        """A document was opened, changed or saved: look at it, and then at what depends on it."""
        self.tidy()
        if saved:
            self.unsaved.discard(uri)
        else:
            self.unsaved.add(uri)
        owner = self.session.documents.owner(uri)
        path = path_of(uri)
        others = self.session.touched(path) if path is not None else []
        run = self.session.folders.of(path).settings.run if path is not None else "onType"
        if not self.pulls and (saved or run == "onType"):
            self._later(owner, DELAY, FIRST)
        for other in others:
            if not self.pulls:
                self._later(other, DELAY_OTHERS, SECOND)

    def tidy(self) -> None:
        """Drop what the library keeps of notifications that are dealt with: it keeps a future of each, for ever."""
        futures: dict[Any, Any] = getattr(self.protocol, "_request_futures", {})  # of pygls 2.1
        if len(futures) > _MANY:
            for key in [key for key, future in futures.items() if future.done()]:
                del futures[key]

    def disk_changed(self, changes: Iterable[lsp.FileEvent]) -> None:
        """Files changed outside of the editor."""
        configuration, sources = False, False
        opened = {path for path, _ in self.session.documents.files()}
        for change in changes:
            path = path_of(change.uri)
            if path is None:
                continue
            if path.name in _SETTINGS or requirement.is_asked(path.name):
                configuration = True
            elif path not in opened or change.type is not lsp.FileChangeType.Changed:
                sources = True
                self.session.touched(path, on_disk=True)
                self.everything.touched(path)
        if configuration:
            for folder in self.session.folders.all():
                folder.reread()
            for folder in self.session.folders:
                self.show_problem(folder)
            self.session.touched(None)
            self.everything.begin()
        if sources:
            for folder in self.session.folders.all():
                folder.anew()
        if configuration or sources:
            self.refresh()

    def refresh(self) -> None:
        """Look at all that is open anew, as far as its answers no longer hold."""
        if self._refreshes_lenses:
            self.workspace_code_lens_refresh(None)
        if self.pulls:
            if self._refreshes:
                self.workspace_diagnostic_refresh(None)
            return
        for uri in self.session.documents.owners():
            if self.session.is_stale(uri):
                self._later(uri, DELAY, SECOND)

    @property
    def _refreshes(self) -> bool:
        """Can a client that asks be told to ask again?"""
        workspace = self.client_capabilities.workspace
        return bool(workspace and workspace.diagnostics and workspace.diagnostics.refresh_support)

    @property
    def _refreshes_lenses(self) -> bool:
        """Can a client be told to ask for code lenses again?"""
        workspace = self.client_capabilities.workspace
        return bool(workspace and workspace.code_lens and workspace.code_lens.refresh_support)

    def _later(self, uri: str, delay: float, priority: int) -> None:
        """Check and publish after a while in which nothing more happens."""
        self._instead(uri, self._check_and_publish(uri, delay, priority))

    def _instead(self, uri: str, work: Coroutine[Any, Any, None]) -> None:
        """Do this for a document, and no more what was to be done for it before."""
        task = self._soon.pop(uri, None)
        if task is not None:
            task.cancel()
        task = self._soon[uri] = asyncio.create_task(work)
        task.add_done_callback(lambda done: self._soon.pop(uri) if self._soon.get(uri) is done else None)

    async def _check_and_publish(self, uri: str, delay: float, priority: int) -> None:
        await asyncio.sleep(delay)
        checked = await self.session.check(uri, priority)
        if checked is not None:
            self.publish(checked)

    def tell(self, checked: Checked) -> None:
        """Say once of a document that the linter itself failed on it."""
        uri = checked.unit.uri
        if checked.failed and uri not in self._failed:
            self._failed.add(uri)
            text = f"torchmemlint: internal error while checking {checked.unit.path}; please report it with the log"
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, text))

    def publish(self, checked: Checked) -> None:
        """Send what a check found, for the state that it was about."""
        self.tell(checked)
        for uri, found in self.presenter.of_unit(checked).items():
            document = self.session.documents.get(uri)
            if document is not None:
                self._publish(uri, [diagnostic for _, diagnostic in found], document.version)

    def publish_file(self, path: Path, findings: Sequence[Finding]) -> None:
        """Send what was found in a file that is not open."""
        self._publish(uri_of(path), self.presenter.of_file(findings, path))

    def _publish(self, uri: str, diagnostics: list[lsp.Diagnostic], version: int | None = None) -> None:
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics, version))

    def closed(self, uri: str) -> None:
        """A document is no longer open: what depends on it sees the disk's text again."""
        task = self._soon.pop(uri, None)
        if task is not None:
            task.cancel()
        self.session.closed(uri)
        self.unsaved.discard(uri)
        self.answered.pop(uri, None)
        path = path_of(uri)
        if path is not None:
            self.session.folders.of(path).anew()
            self.session.touched(path)
            self.everything.touched(path)
        if not self.pulls:
            if path is not None:
                self.publish_file(path, self.everything.of(path))
            else:
                self._publish(uri, [])
            self.refresh()

    async def show_page(self, code: str, text: str) -> None:
        """Show a rule's page as a document, where the client can, and else what it says first."""
        window = self.client_capabilities.window
        if window is not None and window.show_document is not None and window.show_document.support:
            if self._pages is None:
                self._pages = tempfile.TemporaryDirectory(prefix="torchmemlint-")
            path = Path(self._pages.name) / f"{code}.md"
            path.write_text(text, encoding="utf-8")
            with contextlib.suppress(Exception):  # a client that says it can and then cannot
                await self.window_show_document_async(lsp.ShowDocumentParams(uri_of(path), take_focus=True))
                return
        beginning = text.split("## Example")[0].strip()
        self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, beginning))

    def end(self) -> None:
        """Stop all work."""
        if self._pages is not None:
            self._pages.cleanup()
            self._pages = None
        for task in self._soon.values():
            with contextlib.suppress(RuntimeError):  # the event loop is gone
                task.cancel()
        self.everything.end()
        self.session.worker.end()

    def about(self) -> str:
        """What a report of a problem should say of this server."""
        session = self.session
        lines = [
            f"torchmemlint {__version__}, Python {platform.python_version()} ({sys.executable}), {platform.platform()}",
            f"diagnostics: {'asked for' if self.pulls else 'sent'}; positions: {self.presenter.encoding}",
        ]
        for folder in session.folders:
            lines.append(f"folder {folder.path}: {folder.settings}")
            lines.append(f"  configuration: {folder.settings_for(folder.path).source or 'none found'}")
            if folder.problem is not None:
                lines.append(f"  problem: {folder.problem}")
        for uri in session.documents.owners():
            checked = session.last(uri)
            what = f"{len(checked.all)} findings in {checked.seconds * 1000:.0f} ms" if checked else "not checked"
            lines.append(f"open: {uri}: {what}")
        return "\n".join(lines)


def serve() -> None:
    """Serve one client over standard input and output, until it leaves."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    server = Server()
    gc.disable()  # the session collects when there is time
    try:
        server.start_io()
    finally:
        server.end()
