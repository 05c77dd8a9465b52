"""Which message of the protocol is answered how."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from torchmemlint.server import pages
from torchmemlint.server.actions import KINDS
from torchmemlint.server.documents import Document, Notebook, changed, path_of
from torchmemlint.server.pages import EXPLAIN
from torchmemlint.server.positions import Places
from torchmemlint.server.settings import SECTION

if TYPE_CHECKING:
    from torchmemlint.server.app import Server


def register(server: Server) -> None:
    """Give the server an answer to each message."""
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
        waits = folder.settings.run == "onSave" and uri in server.unsaved
        checked = server.answered.get(uri) if waits else None
        if checked is None:
            checked = await server.session.check(uri)
        if checked is None:
            return lsp.RelatedFullDocumentDiagnosticReport(items=[])
        server.answered[uri] = checked
        server.tell(checked)
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

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        uri = params.text_document.uri
        folder = server.session.folders.of(path_of(uri) or Path.cwd())
        if not folder.settings.code_lens:
            return []
        checked = await server.session.check(uri)
        if checked is None:
            return []
        found = server.presenter.of_unit(checked).get(uri, [])
        return pages.lenses([(one, shown.range) for one, shown in found])

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
        if text is None:
            return None
        await server.show_page(code.upper(), text)
        rule = pages.rule_of(code)
        return {"code": rule.code, "name": rule.name, "markdown": text} if rule is not None else None

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
