"""A real client at the other end of real pipes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")
pytest_lsp = pytest.importorskip("pytest_lsp")

from lsprotocol import types as lsp  # noqa: E402
from pytest_lsp import LanguageClient  # noqa: E402

COMMAND = [sys.executable, "-m", "torchmemlint", "server"]
PATIENCE = 60  # seconds: a machine that is busy with other tests is slow


class Editor:
    """What a test does with a server, in few words."""

    def __init__(self, client, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.versions: dict[str, int] = {}

    async def begin(self, *, capabilities: str = "visual-studio-code", settings=None, folders=None, change=None):
        """Initialise the session; `change` may alter the client's capabilities."""
        able = pytest_lsp.client_capabilities(capabilities)
        if change is not None:
            change(able)
        paths = [self.folder] if folders is None else folders
        result = await self.client.initialize_session(
            lsp.InitializeParams(
                capabilities=able,
                workspace_folders=[lsp.WorkspaceFolder(uri=path.as_uri(), name=path.name) for path in paths],
                initialization_options={"settings": settings or {}},
            )
        )
        return result

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def open(self, name: str, text: str) -> str:
        uri = self.uri(name)
        self.versions[uri] = 1
        item = lsp.TextDocumentItem(uri=uri, language_id="python", version=1, text=text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, *changes) -> int:
        """Send changes: texts, or tuples of row, column, end row, end column, text."""
        version = self.versions[uri] = self.versions[uri] + 1
        events = [
            lsp.TextDocumentContentChangeWholeDocument(text=change) if isinstance(change, str) else _partial(change)
            for change in changes
        ]
        identifier = lsp.VersionedTextDocumentIdentifier(uri=uri, version=version)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, events))
        return version

    async def published(self, uri: str, wanted) -> list[lsp.Diagnostic]:
        """Wait until what is sent for a document is as wanted: a predicate, or a list of codes."""
        if not callable(wanted):
            codes = wanted
            wanted = lambda found: [one.code for one in found] == codes  # noqa: E731

        async def wait():
            while uri not in self.client.diagnostics or not wanted(self.client.diagnostics[uri]):
                await self.client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
            return list(self.client.diagnostics[uri])

        try:
            return await asyncio.wait_for(wait(), PATIENCE)
        except asyncio.TimeoutError:
            pytest.fail(f"last sent for {uri}: {self.client.diagnostics.get(uri)}")

    async def pull(self, uri: str, previous: str | None = None):
        return await self.client.text_document_diagnostic_async(
            lsp.DocumentDiagnosticParams(lsp.TextDocumentIdentifier(uri), previous_result_id=previous)
        )

    async def actions(self, uri: str, where: lsp.Range, only=None, diagnostics=()) -> list[lsp.CodeAction]:
        context = lsp.CodeActionContext(diagnostics=list(diagnostics), only=only)
        found = await self.client.text_document_code_action_async(
            lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), where, context)
        )
        return list(found or ())


def at(row: int, column: int = 0, end_column: int | None = None) -> lsp.Range:
    return lsp.Range(lsp.Position(row, column), lsp.Position(row, column if end_column is None else end_column))


def _partial(change) -> lsp.TextDocumentContentChangePartial:
    row, column, end_row, end_column, text = change
    where = lsp.Range(lsp.Position(row, column), lsp.Position(end_row, end_column))
    return lsp.TextDocumentContentChangePartial(range=where, text=text)


@pytest_lsp.fixture(config=pytest_lsp.ClientServerConfig(server_command=COMMAND))
async def client(lsp_client: LanguageClient):
    lsp_client.registered = []

    @lsp_client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
    def register(params: lsp.RegistrationParams) -> None:
        lsp_client.registered += params.registrations

    @lsp_client.feature(lsp.WORKSPACE_CODE_LENS_REFRESH)
    def lenses_changed(params: None) -> None:
        return None

    @lsp_client.feature(lsp.WORKSPACE_APPLY_EDIT)
    def apply(params: lsp.ApplyWorkspaceEditParams) -> lsp.ApplyWorkspaceEditResult:
        lsp_client.applied = params.edit
        return lsp.ApplyWorkspaceEditResult(applied=True)

    yield
    await lsp_client.shutdown_session()


@pytest.fixture
def editor(client, tmp_path) -> Editor:
    project = tmp_path / "project"
    project.mkdir()
    return Editor(client, project)
