"""The protocol's side of the server: each message to what answers it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from torchmemlint import __version__
from torchmemlint.config.resolver import FILE_NAMES
from torchmemlint.findings import Finding
from torchmemlint.server import pages
from torchmemlint.server.actions import EXPLAIN, KINDS, Actions
from torchmemlint.server.configuration import problem_in
from torchmemlint.server.diagnostics import Presenter
from torchmemlint.server.documents import Document, Notebook, changed, path_of, uri_of
from torchmemlint.server.folders import Folder
from torchmemlint.server.positions import Places
from torchmemlint.server.session import FIRST, SECOND, Checked, Session
from torchmemlint.server.settings import ClientSettings, read_settings
from torchmemlint.server.workspace import WorkspaceCheck
from torchmemlint.source.decoding import UnreadableFile, decode, read

log = logging.getLogger("torchmemlint.server")

SECTION = "torchmemlint"
DELAY = 0.05  # seconds of quiet before what was typed is looked at
DELAY_OTHERS = 0.4  # before the other open documents that depend on it are
_WATCHED = (*FILE_NAMES, ".gitignore", "torchmemlint-measured.json")
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
        super().__init__("torchmemlint", __version__, notebook_document_sync=_NOTEBOOKS)
        self.session = Session()
        self.presenter: Presenter
        self.actions: Actions
        self.everything = WorkspaceCheck(self)
        self.pulls = False  # the client asks for diagnostics; else they are sent
        self._soon: dict[str, asyncio.Task[None]] = {}
        self._problems: dict[Path, str] = {}  # configuration files that are shown as broken
        _register(self)

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
        owner = self.session.documents.owner(uri)
        path = path_of(uri)
        others = self.session.touched(path) if path is not None else []
        run = self.session.folders.of(path).settings.run if path is not None else "onType"
        if not self.pulls and (saved or run == "onType"):
            self._later(owner, DELAY, FIRST)
        for other in others:
            if not self.pulls:
                self._later(other, DELAY_OTHERS, SECOND)

    def disk_changed(self, changes: Iterable[lsp.FileEvent]) -> None:
        """Files changed outside of the editor."""
        configuration, sources = False, False
        opened = {path for path, _ in self.session.documents.files()}
        for change in changes:
            path = path_of(change.uri)
            if path is None:
                continue
            if path.name in _WATCHED:
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
        workspace = self.client_capabilities.workspace
        if self.pulls:
            can = workspace is not None and workspace.diagnostics is not None and workspace.diagnostics.refresh_support
            if can:
                self.workspace_diagnostic_refresh(None)
            return
        for uri in self.session.documents.owners():
            if self.session.is_stale(uri):
                self._later(uri, DELAY, SECOND)

    def _later(self, uri: str, delay: float, priority: int) -> None:
        """Check and publish after a while in which nothing more happens."""
        task = self._soon.pop(uri, None)
        if task is not None:
            task.cancel()
        self._soon[uri] = asyncio.create_task(self._check_and_publish(uri, delay, priority))

    async def _check_and_publish(self, uri: str, delay: float, priority: int) -> None:
        await asyncio.sleep(delay)
        try:
            checked = await self.session.check(uri, priority)
        finally:
            if self._soon.get(uri) is asyncio.current_task():
                del self._soon[uri]
        if checked is not None:
            self.publish(checked)

    def publish(self, checked: Checked) -> None:
        """Send what a check found, for the state that it was about."""
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

    def end(self) -> None:
        """Stop all work."""
        for task in self._soon.values():
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


def _register(server: Server) -> None:
    """Which message is answered how."""
    documents = server.session.documents

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        server.begin(params)

    @server.feature(lsp.INITIALIZED)
    async def initialized(params: lsp.InitializedParams) -> None:
        await server.begun()

    @server.feature(lsp.SHUTDOWN)
    def shutdown(params: None) -> None:
        server.end()

    # -- documents

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        documents.put(Document(item.uri, item.text, item.version, str(item.language_id)))
        server.edited(item.uri, saved=True)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        document = documents.get(uri)
        if document is not None:
            after = changed(document, params.content_changes, server.presenter.encoding)
            documents.put(Document(uri, after.text, params.text_document.version, after.language))
            server.edited(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        server.edited(params.text_document.uri, saved=True)
        path = path_of(params.text_document.uri)
        if path is not None:
            server.everything.touched(path)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        documents.drop(params.text_document.uri)
        server.closed(params.text_document.uri)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    async def did_open_notebook(params: lsp.DidOpenNotebookDocumentParams) -> None:
        for cell in params.cell_text_documents:
            documents.put(Document(cell.uri, cell.text, cell.version, str(cell.language_id)))
        _put_notebook(server, params.notebook_document.uri)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    async def did_change_notebook(params: lsp.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells
        if cells is not None and cells.structure is not None:
            for opened in cells.structure.did_open or ():
                documents.put(Document(opened.uri, opened.text, opened.version, str(opened.language_id)))
            for gone in cells.structure.did_close or ():
                documents.drop(gone.uri)
                if not server.pulls:
                    server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(gone.uri, []))
        for content in (cells.text_content if cells is not None else None) or ():
            document = documents.get(content.document.uri)
            if document is not None:
                after = changed(document, content.changes, server.presenter.encoding)
                documents.put(Document(after.uri, after.text, content.document.version, after.language))
        _put_notebook(server, params.notebook_document.uri)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_SAVE)
    async def did_save_notebook(params: lsp.DidSaveNotebookDocumentParams) -> None:
        server.edited(params.notebook_document.uri, saved=True)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    async def did_close_notebook(params: lsp.DidCloseNotebookDocumentParams) -> None:
        notebook = documents.notebook(params.notebook_document.uri)
        cells = notebook.cells if notebook is not None else ()
        documents.drop_notebook(params.notebook_document.uri)
        server.closed(params.notebook_document.uri)
        if not server.pulls:
            for cell in cells:
                server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(cell, []))

    # -- the workspace

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def did_change_watched_files(params: lsp.DidChangeWatchedFilesParams) -> None:
        server.disk_changed(params.changes)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: lsp.DidChangeConfigurationParams) -> None:
        server.settings_changed(params.settings)
        await server.ask_for_settings()
        for folder in server.session.folders:
            server.show_problem(folder)
        server.session.touched(None)
        server.refresh()
        server.everything.begin()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def did_change_workspace_folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            path = path_of(folder.uri)
            if path is not None:
                server.session.folders.remove(path)
        for folder in params.event.added:
            server.add_folder(folder.uri)
        await server.ask_for_settings()
        server.session.touched(None)
        server.refresh()
        server.everything.begin()

    # -- questions

    @server.feature(
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=True, identifier=SECTION),
    )
    async def diagnostic(params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
        uri = params.text_document.uri
        folder = server.session.folders.of(path_of(uri) or Path.cwd())
        checked = server.session.last(uri) if folder.settings.run == "onSave" else None
        if checked is None:
            await asyncio.sleep(0)
            checked = await server.session.check(uri)
        if checked is None:
            return lsp.RelatedFullDocumentDiagnosticReport(items=[])
        if params.previous_result_id == str(checked.number):
            return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=str(checked.number))
        found = server.presenter.of_unit(checked).get(uri, [])
        items = [diagnostic for _, diagnostic in found]
        return lsp.RelatedFullDocumentDiagnosticReport(items=items, result_id=str(checked.number))

    @server.feature(lsp.WORKSPACE_DIAGNOSTIC)
    async def workspace_diagnostic(params: lsp.WorkspaceDiagnosticParams) -> lsp.WorkspaceDiagnosticReport:
        return await server.everything.report({one.uri: one.value for one in params.previous_result_ids})

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=KINDS, resolve_provider=True)
    )
    async def code_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        return await server.actions.offer(params)

    @server.feature(lsp.CODE_ACTION_RESOLVE)
    async def code_action_resolve(params: lsp.CodeAction) -> lsp.CodeAction:
        return await server.actions.resolve(params)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        uri, position = params.text_document.uri, params.position
        document = documents.get(uri)
        if document is None:
            return None
        line, column = _line(document.text, position, server.presenter.encoding)
        checked = server.session.last(uri)
        found = server.presenter.of_unit(checked).get(uri, []) if checked is not None else []
        here = [(one, shown.range) for one, shown in found if shown.range.start <= position <= shown.range.end]
        return pages.hover(here, line, position.line, column)

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=pages.TRIGGERS, resolve_provider=True),
    )
    async def completion(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        document = documents.get(params.text_document.uri)
        if document is None:
            return []
        line, column = _line(document.text, params.position, server.presenter.encoding)
        return pages.completions(line[:column], params.position)

    @server.feature(lsp.COMPLETION_ITEM_RESOLVE)
    async def completion_resolve(params: lsp.CompletionItem) -> lsp.CompletionItem:
        return pages.documented(params)

    # -- commands

    @server.command("torchmemlint.server.fixAll")
    async def fix_all(uri: str) -> bool:
        edit = await server.actions.fix_all(uri)
        if edit is None:
            return False
        label = "Fix memory problems"
        answer = await server.workspace_apply_edit_async(lsp.ApplyWorkspaceEditParams(edit, label))
        return bool(answer.applied)

    @server.command(EXPLAIN)
    async def explain(code: str) -> dict[str, Any] | None:
        text = pages.page(code)
        return None if text is None else {"code": code, "markdown": text}

    @server.command("torchmemlint.server.debug")
    async def debug() -> str:
        return server.about()


def _put_notebook(server: Server, uri: str) -> None:
    """Take over the order of a notebook's cells of code from what the library keeps of it."""
    notebook = server.workspace.get_notebook_document(notebook_uri=uri)
    if notebook is not None:
        cells = tuple(cell.document for cell in notebook.cells if cell.kind == lsp.NotebookCellKind.Code)
        server.session.documents.put_notebook(Notebook(uri, cells, notebook.version))
        server.edited(uri)


def _line(text: str, position: lsp.Position, encoding: str) -> tuple[str, int]:
    """The row that a place is in, and the place's column in characters from 0."""
    places = Places(text, encoding)
    start = places.offset(lsp.Position(position.line, 0))
    at = places.offset(position)
    end = places.offset(lsp.Position(position.line, 2**31 - 1))
    return text[start:end], at - start


def serve() -> None:
    """Serve one client over standard input and output, until it leaves."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    Server().start_io()
