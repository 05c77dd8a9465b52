"""The server as an editor sees it: a process at the other end of two pipes."""

from __future__ import annotations

import pytest
from lsprotocol import types as lsp

from tests.server.conftest import at
from tests.server.samples import LEAK, LEAK_ROW

pytestmark = pytest.mark.asyncio


async def test_a_leak_is_sent_when_the_file_is_opened(editor) -> None:
    await editor.begin()
    uri = editor.open("train.py", LEAK)
    (found,) = await editor.published(uri, ["TML101"])
    assert found.range.start.line == LEAK_ROW
    assert found.severity is lsp.DiagnosticSeverity.Warning
    assert found.source == "torchmemlint"
    assert found.code_description.href.endswith("/rules/TML101/")
    assert [one.location.uri for one in found.related_information] == [uri] * len(found.related_information)
    assert found.related_information


async def test_what_is_typed_counts_and_not_what_the_disk_has(editor) -> None:
    await editor.begin()
    editor.write("train.py", LEAK)
    uri = editor.open("train.py", LEAK)
    await editor.published(uri, ["TML101"])
    editor.change(uri, (LEAK_ROW, 21, LEAK_ROW, 21, ".item()"))
    await editor.published(uri, [])
    editor.change(uri, (LEAK_ROW, 21, LEAK_ROW, 28, ""))
    await editor.published(uri, ["TML101"])


@pytest.mark.parametrize(("shows", "titles"), [(True, ["about 16 MiB (estimated)"]), (False, [])])
async def test_the_cost_stands_above_the_line(editor, shows: bool, titles: list[str]) -> None:
    await editor.begin(settings={"select": ["TML501"], "codeLens": shows})
    text = "import torch\n\nfor batch in range(9):\n    print(torch.zeros(1024, 4096).to('cuda'))\n"
    uri = editor.open("train.py", text)
    await editor.published(uri, ["TML501"])
    params = lsp.CodeLensParams(lsp.TextDocumentIdentifier(uri))
    found = await editor.client.text_document_code_lens_async(params)
    assert [lens.command.title for lens in found] == titles
    assert [lens.range.start.line for lens in found] == [3] * len(titles)


async def test_a_client_that_asks_is_answered_and_sent_nothing(editor) -> None:
    await editor.begin(capabilities="neovim@0.11")
    uri = editor.open("train.py", LEAK)
    report = await editor.pull(uri)
    assert [one.code for one in report.items] == ["TML101"]
    again = await editor.pull(uri, report.result_id)
    assert again.kind == "unchanged"
    editor.change(uri, (LEAK_ROW, 21, LEAK_ROW, 21, ".item()"))
    report = await editor.pull(uri, report.result_id)
    assert not report.items
    assert uri not in editor.client.diagnostics


async def test_half_typed_code_keeps_what_was_found(editor) -> None:
    await editor.begin()
    uri = editor.open("train.py", LEAK)
    await editor.published(uri, ["TML101"])
    editor.change(uri, (1, 0, 1, 0, "def half(\n"))
    found = await editor.published(uri, ["TML000", "TML101"])
    assert found[1].range.start.line == LEAK_ROW + 1
    editor.change(uri, (1, 0, 2, 0, ""))
    (found,) = await editor.published(uri, ["TML101"])
    assert found.range.start.line == LEAK_ROW


async def test_fix_one(editor) -> None:
    await editor.begin()
    uri = editor.open("train.py", LEAK)
    found = await editor.published(uri, ["TML101"])
    actions = await editor.actions(uri, at(LEAK_ROW, 10), diagnostics=found)
    titles = [action.title for action in actions]
    assert titles[0].startswith("Fix TML101: ")
    assert actions[0].is_preferred
    assert titles[1:] == [
        "Ignore TML101 on this line",
        "Ignore TML101 in this file",
        "Explain TML101",
        "Fix all memory problems that torchmemlint can fix safely",
    ]
    resolved = await editor.client.code_action_resolve_async(actions[0])
    (edit,) = resolved.edit.document_changes[0].edits
    assert (edit.new_text, edit.range) == (".detach()", at(LEAK_ROW, 21))
    assert resolved.edit.document_changes[0].text_document.version == 1


async def test_fix_all_of_a_document(editor) -> None:
    await editor.begin()
    twice = LEAK + LEAK.replace("import torch\n", "").replace("def train", "def again")
    uri = editor.open("train.py", twice)
    found = await editor.published(uri, ["TML101", "TML101"])
    only = ["source.fixAll.torchmemlint"]
    (action,) = await editor.actions(uri, at(0), only=only)
    resolved = await editor.client.code_action_resolve_async(action)
    assert [edit.new_text for edit in resolved.edit.document_changes[0].edits] == [".detach()"] * 2
    titles = [one.title for one in await editor.actions(uri, found[0].range, only=["quickfix"])]
    assert "Fix all TML101 in this file" in titles
    assert await editor.client.workspace_execute_command_async(
        lsp.ExecuteCommandParams("torchmemlint.server.fixAll", [uri])
    )
    assert len(editor.client.applied.document_changes[0].edits) == 2


async def test_ignore_here_and_in_the_file(editor) -> None:
    await editor.begin()
    uri = editor.open("train.py", LEAK)
    (found,) = await editor.published(uri, ["TML101"])
    actions = {one.title: one for one in await editor.actions(uri, found.range)}
    (edit,) = actions["Ignore TML101 on this line"].edit.document_changes[0].edits
    assert (edit.new_text, edit.range) == ("  # torchmemlint: ignore[TML101]", at(LEAK_ROW, 21))
    (edit,) = actions["Ignore TML101 in this file"].edit.document_changes[0].edits
    assert (edit.new_text, edit.range) == ("# torchmemlint: ignore-file[TML101]\n", at(0))
    editor.change(uri, (LEAK_ROW, 21, LEAK_ROW, 21, "  # torchmemlint: ignore[TML101]"))
    await editor.published(uri, [])


async def test_pages(editor) -> None:
    await editor.begin()
    text = LEAK.replace("y)\n", "y)  # torchmemlint: ignore[TML103]\n")
    uri = editor.open("train.py", text)
    await editor.published(uri, ["TML001", "TML101"])

    async def hover(row: int, column: int) -> str | None:
        params = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(row, column))
        found = await editor.client.text_document_hover_async(params)
        return found.contents.value if found is not None else None

    said = await hover(LEAK_ROW, 10)
    assert said.startswith("**TML101** graph-accumulation (warning)\n\n")
    assert said.endswith("[Learn more](https://torchmemlint.readthedocs.io/rules/TML101/)")
    assert "- why: " in said
    assert "- fix (safe): Detach `loss` from its graph" in said
    assert len(said) < 600
    assert "(TML103)" in await hover(6, text.splitlines()[6].index("TML103") + 2)
    assert await hover(0, 1) is None
    explained = await editor.client.workspace_execute_command_async(
        lsp.ExecuteCommandParams("torchmemlint.server.explain", ["TML101"])
    )
    assert "## Why it costs memory" in explained["markdown"]
    assert (explained["code"], explained["name"]) == ("TML101", "graph-accumulation")
    (page,) = editor.client.shown_documents
    assert page.uri.endswith("/TML101.md")
    about = await editor.client.workspace_execute_command_async(lsp.ExecuteCommandParams("torchmemlint.server.debug"))
    assert str(editor.folder) in about


async def test_codes_are_completed_in_suppression_comments(editor) -> None:
    await editor.begin()
    line = "x = 1  # torchmemlint: ignore[TML101, TML2"
    uri = editor.open("a.py", f"import torch\n{line}\n")

    async def complete(column: int) -> list[lsp.CompletionItem]:
        params = lsp.CompletionParams(lsp.TextDocumentIdentifier(uri), lsp.Position(1, column))
        return list(await editor.client.text_document_completion_async(params) or ())

    items = await complete(len(line))
    labels = [item.label for item in items]
    assert "TML201" in labels
    assert "TML101" not in labels  # it is there already
    chosen = items[labels.index("TML201")]
    assert chosen.text_edit.range == at(1, len(line) - 4, len(line))
    resolved = await editor.client.completion_item_resolve_async(chosen)
    assert "(TML201)" in resolved.documentation.value
    assert await complete(3) == []


async def test_a_helper_that_is_open_counts_as_it_stands_there(editor) -> None:
    await editor.begin()
    kept = "class Meter:\n    def __init__(self):\n        self.values = []\n\n    def add(self, value):\n"
    editor.write("meters.py", kept + "        self.values.append(value.item())\n")
    main = "from meters import Meter\n" + LEAK.replace("total = 0", "total = Meter()").replace(
        "total += loss", "total.add(loss)"
    ).replace("return total / len(loader)", "return total")
    editor.write("train.py", main)
    uri = editor.open("train.py", main)
    await editor.published(uri, [])
    helper = editor.open("meters.py", kept + "        self.values.append(value.item())\n")
    editor.change(helper, kept + "        self.values.append(value)\n")
    (found,) = await editor.published(uri, lambda found: len(found) == 1)
    assert helper in [one.location.uri for one in found.related_information]
    editor.client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(helper)))
    await editor.published(uri, [])  # the disk's text counts again


async def test_a_broken_configuration_is_shown_where_it_is_broken(editor) -> None:
    path = editor.write("pyproject.toml", '[tool.torchmemlint]\nselect = ["TML101"]\nignroe = []\n')
    await editor.begin()
    (found,) = await editor.published(path.as_uri(), ["configuration"])
    assert found.range.start.line == 2
    assert "Did you mean `ignore`?" in found.message
    uri = editor.open("train.py", LEAK)
    await editor.published(uri, ["TML101"])  # without it, or with what it said last
    editor.write("pyproject.toml", '[tool.torchmemlint]\nignore = ["TML101"]\n')
    event = lsp.FileEvent(path.as_uri(), lsp.FileChangeType.Changed)
    editor.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([event]))
    await editor.published(path.as_uri(), [])
    await editor.published(uri, [])
    (registration, *_) = editor.client.registered
    patterns = [watcher["globPattern"] for watcher in registration.register_options["watchers"]]
    assert "**/pyproject.toml" in patterns


async def test_what_git_ignores_and_what_is_excluded_is_silent(editor) -> None:
    (editor.folder / ".git").mkdir()
    editor.write(".gitignore", "scratch/\n")
    editor.write("torchmemlint.toml", 'extend-exclude = ["generated"]\n')
    await editor.begin(capabilities="neovim@0.11")
    for name, count in (("scratch/a.py", 0), ("generated/a.py", 0), ("train.py", 1)):
        editor.write(name, LEAK)
        report = await editor.pull(editor.open(name, LEAK))
        assert len(report.items or ()) == count, name


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_columns_count_as_agreed(editor, encoding: str) -> None:
    def agree(capabilities: lsp.ClientCapabilities) -> None:
        capabilities.general.position_encodings = [lsp.PositionEncodingKind(encoding)]

    result = await editor.begin(change=agree)
    assert result.capabilities.position_encoding == encoding
    line = 'if "é😀": total += loss'
    uri = editor.open("train.py", LEAK.replace("total += loss", line))
    (found,) = await editor.published(uri, ["TML101"])
    units = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    before = ("        " + line[: line.index("total")]).encode(
        encoding.replace("utf-16", "utf-16-le").replace("32", "32-le")
    )
    assert found.range.start.character == len(before) // units


async def test_settings_of_the_client(editor) -> None:
    await editor.begin(settings={"ignore": ["TML101"], "runn": "onType"})
    assert "Did you mean `run`?" in editor.client.messages[0].message
    uri = editor.open("train.py", LEAK)
    await editor.published(uri, [])
    editor.client.set_configuration({"ignore": []}, section="torchmemlint")
    editor.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams({"torchmemlint": {"ignore": []}}))
    await editor.published(uri, ["TML101"])


@pytest.mark.parametrize("capabilities", ["visual-studio-code", "neovim@0.11"])
async def test_on_save_only(editor, capabilities: str) -> None:
    await editor.begin(settings={"run": "onSave"}, capabilities=capabilities)
    uri = editor.open("train.py", LEAK)

    async def codes() -> list[str]:
        if capabilities.startswith("neovim"):
            return [one.code for one in (await editor.pull(uri)).items or ()]
        return [one.code for one in editor.client.diagnostics.get(uri, ())]

    if not capabilities.startswith("neovim"):
        await editor.published(uri, ["TML101"])
    assert await codes() == ["TML101"]
    editor.change(uri, (LEAK_ROW, 21, LEAK_ROW, 21, ".item()"))
    await editor.actions(uri, at(0))  # a check is done for the actions, and not shown
    assert await codes() == ["TML101"]
    saved = lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri))
    editor.client.text_document_did_save(saved)
    if not capabilities.startswith("neovim"):
        await editor.published(uri, [])
    assert await codes() == []


async def test_folders_have_their_own_configuration(editor) -> None:
    editor.write("one/torchmemlint.toml", 'ignore = ["TML101"]\n')
    editor.write("two/torchmemlint.toml", 'severity = {TML101 = "error"}\n')
    await editor.begin(folders=[editor.folder / "one"], capabilities="neovim@0.11")
    assert not (await editor.pull(editor.open("one/train.py", LEAK))).items
    added = lsp.WorkspaceFolder((editor.folder / "two").as_uri(), "two")
    event = lsp.WorkspaceFoldersChangeEvent(added=[added], removed=[])
    editor.client.workspace_did_change_workspace_folders(lsp.DidChangeWorkspaceFoldersParams(event))
    (found,) = (await editor.pull(editor.open("two/train.py", LEAK))).items
    assert found.severity is lsp.DiagnosticSeverity.Error


async def test_a_text_that_was_never_saved(editor) -> None:
    await editor.begin(capabilities="neovim@0.11")
    item = lsp.TextDocumentItem("untitled:Untitled-1", "python", 1, LEAK)
    editor.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    (found,) = (await editor.pull(item.uri)).items
    assert found.code == "TML101"


async def test_odd_messages_do_no_harm(editor) -> None:
    await editor.begin()
    uri = editor.open("train.py", LEAK)
    editor.change(uri, (900, 5, 901, 7, "# past the end\n"), (0, 800, 0, 900, "  # past the line"))
    editor.versions["file:///nowhere.py"] = 1
    unknown = lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier("file:///nowhere.py"))
    editor.client.text_document_did_close(unknown)
    assert await editor.actions("file:///nowhere.py", at(0)) == []
    await editor.published(uri, ["TML101"])
    editor.change(uri, "\ud800 = 1\n")  # half a character, as some clients send it while one is typed
    editor.change(uri, LEAK)
    await editor.published(uri, ["TML101"])


async def test_a_notebook(editor) -> None:
    await editor.begin()
    first, second = LEAK.split("def train")
    cells = {"nb:1": "%matplotlib inline\n" + first, "nb:2": "def train" + second, "nb:3": "!nvidia-smi\nx = (\n"}
    uri = editor.uri("notes.ipynb")
    notebook = lsp.NotebookDocument(
        uri=uri,
        notebook_type="jupyter-notebook",
        version=1,
        cells=[lsp.NotebookCell(kind=lsp.NotebookCellKind.Code, document=cell) for cell in cells],
    )
    items = [lsp.TextDocumentItem(cell, "python", 1, text) for cell, text in cells.items()]
    editor.client.notebook_document_did_open(lsp.DidOpenNotebookDocumentParams(notebook, items))
    (found,) = await editor.published("nb:2", ["TML101"])
    assert found.range.start.line == LEAK_ROW - 3
    (unreadable,) = await editor.published("nb:3", ["TML000"])
    assert unreadable.message.endswith("this cell is passed over")
    assert unreadable.range.start.line >= 1
    action = (await editor.actions("nb:2", found.range))[0]
    resolved = await editor.client.code_action_resolve_async(action)
    (change,) = resolved.edit.document_changes
    assert (change.text_document.uri, change.edits[0].new_text) == ("nb:2", ".detach()")
    text = lsp.NotebookDocumentCellContentChanges(
        document=lsp.VersionedTextDocumentIdentifier(uri="nb:2", version=2),
        changes=[lsp.TextDocumentContentChangePartial(at(LEAK_ROW - 3, 21), ".item()")],
    )
    event = lsp.NotebookDocumentChangeEvent(cells=lsp.NotebookDocumentCellChanges(text_content=[text]))
    identifier = lsp.VersionedNotebookDocumentIdentifier(version=2, uri=uri)
    editor.client.notebook_document_did_change(lsp.DidChangeNotebookDocumentParams(identifier, event))
    await editor.published("nb:2", [])
    await editor.published("nb:3", ["TML000"])


@pytest.mark.parametrize(("settings", "text"), [({"showSyntaxErrors": False}, LEAK), ({}, "x = 1\n")])
async def test_cells_that_cannot_be_read_are_passed_over_in_silence(editor, settings, text) -> None:
    await editor.begin(settings=settings)
    cells = {"nb:1": "x = (\n", "nb:2": text}
    notebook = lsp.NotebookDocument(
        uri=editor.uri("notes.ipynb"),
        notebook_type="jupyter-notebook",
        version=1,
        cells=[lsp.NotebookCell(kind=lsp.NotebookCellKind.Code, document=cell) for cell in cells],
    )
    items = [lsp.TextDocumentItem(cell, "python", 1, text) for cell, text in cells.items()]
    editor.client.notebook_document_did_open(lsp.DidOpenNotebookDocumentParams(notebook, items))
    await editor.published("nb:2", ["TML101"] if text == LEAK else [])
    await editor.published("nb:1", [])


async def test_the_whole_workspace(editor) -> None:
    editor.write("torchmemlint.toml", 'exclude = ["out"]\n')
    for name in ("a.py", "package/b.py", "out/c.py"):
        editor.write(name, LEAK)
    await editor.begin(settings={"workspaceDiagnostics": "all"})
    await editor.published(editor.uri("a.py"), ["TML101"])
    await editor.published(editor.uri("package/b.py"), ["TML101"])
    assert editor.uri("out/c.py") not in editor.client.diagnostics
    assert any(reports for reports in editor.client.progress_reports.values())
    uri = editor.open("a.py", LEAK.replace("+= loss", "+= loss.item()"))
    await editor.published(uri, [])  # what is open is not as on the disk
    editor.client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
    await editor.published(uri, ["TML101"])


async def test_the_whole_workspace_for_a_client_that_asks(editor) -> None:
    editor.write("a.py", LEAK)
    await editor.begin(settings={"workspaceDiagnostics": "all"}, capabilities="neovim@0.11")
    params = lsp.WorkspaceDiagnosticParams(previous_result_ids=[])
    report = await editor.client.workspace_diagnostic_async(params)
    (item,) = report.items
    assert (item.uri, [one.code for one in item.items]) == (editor.uri("a.py"), ["TML101"])


HELPED = """\
import torch


def step(model, x, y):
    loss = torch.nn.functional.mse_loss(model(x), y)
    return loss


def train(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = step(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total / len(loader)
"""


async def test_what_an_edit_changes_for_callers_is_said_at_once(editor) -> None:
    """What runs show of the file is asked anew for every edit."""
    await editor.begin(capabilities="neovim@0.11", change=_refreshes)
    uri = editor.open("train.py", HELPED)
    found = [one.code for one in (await editor.pull(uri)).items]
    assert "TML101" in found
    editor.change(uri, (5, 15, 5, 15, ".item()"))
    assert "TML101" not in [one.code for one in (await editor.pull(uri)).items]


async def test_a_client_that_cannot_be_told_to_ask_again_waits_for_the_whole_check(editor) -> None:
    await editor.begin(capabilities="neovim@0.11", change=lambda able: _refreshes(able, can=False))
    uri = editor.open("train.py", HELPED)
    assert "TML101" in [one.code for one in (await editor.pull(uri)).items]
    editor.change(uri, (5, 15, 5, 15, ".item()"))
    assert "TML101" not in [one.code for one in (await editor.pull(uri)).items]


def _refreshes(able: lsp.ClientCapabilities, *, can: bool = True) -> None:
    able.workspace.diagnostics = lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=can)
