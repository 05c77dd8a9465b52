"""What the baseline knows is not shown in the editor; the file is watched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types as lsp

from tests.server.conftest import at
from tests.server.samples import LEAK, LEAK_ROW

pytestmark = pytest.mark.asyncio

NAME = "torchmemlint-baseline.json"
MORE = LEAK.replace("import torch\n", "").replace("def train", "def again")


@pytest.fixture
def known(editor) -> Path:
    """The one finding of train.py is in the baseline."""
    editor.write("torchmemlint.toml", "")
    editor.write("train.py", LEAK)
    command = [sys.executable, "-m", "torchmemlint", "baseline", "create"]
    subprocess.run(command, cwd=editor.folder, check=True, capture_output=True)
    return editor.folder / NAME


def say_changed(editor, path: Path) -> None:
    event = lsp.FileEvent(path.as_uri(), lsp.FileChangeType.Changed)
    editor.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([event]))


async def test_only_what_is_new_is_shown_and_fixed(editor, known: Path) -> None:
    await editor.begin()
    uri = editor.open("train.py", "\n" + LEAK)
    await editor.published(uri, [])
    assert await editor.actions(uri, at(LEAK_ROW + 1, 10)) == []
    editor.change(uri, LEAK + MORE)
    (found,) = await editor.published(uri, ["TML101"])
    assert found.range.start.line > LEAK_ROW + 5
    (action,) = await editor.actions(uri, at(0), only=["source.fixAll.torchmemlint"])
    resolved = await editor.client.code_action_resolve_async(action)
    (edit,) = resolved.edit.document_changes[0].edits
    assert edit.range.start.line == found.range.start.line
    # Another edit in the function.
    editor.change(uri, (LEAK_ROW - 1, 0, LEAK_ROW - 1, 0, "        print(loss)\n"))
    await editor.published(uri, lambda shown: [one.range.start.line for one in shown] == [found.range.start.line + 1])


async def test_the_file_is_watched_and_a_broken_one_is_shown(editor, known: Path) -> None:
    await editor.begin()
    uri = editor.open("train.py", LEAK)
    await editor.published(uri, [])
    text = known.read_text()
    known.write_text("{")
    say_changed(editor, known)
    await editor.published(uri, ["TML101"])
    (problem,) = await editor.published(known.as_uri(), ["configuration"])
    assert "Not valid JSON" in problem.message
    known.write_text(text)
    say_changed(editor, known)
    await editor.published(uri, [])
    await editor.published(known.as_uri(), [])
    known.unlink()
    say_changed(editor, known)
    await editor.published(uri, ["TML101"])
    (registration, *_) = editor.client.registered
    assert f"**/{NAME}" in [watcher["globPattern"] for watcher in registration.register_options["watchers"]]


async def test_the_whole_workspace(editor, known: Path) -> None:
    (editor.folder / "train.py").rename(editor.folder / "moved.py")
    new = editor.write("new.py", LEAK.replace("total", "everything"))
    await editor.begin(settings={"workspaceDiagnostics": "all"})
    await editor.published(new.as_uri(), ["TML101"])
    assert not editor.client.diagnostics.get((editor.folder / "moved.py").as_uri())
