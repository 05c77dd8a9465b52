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
