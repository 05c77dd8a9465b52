"""Messages of a client that is broken, or hostile: each is answered or passed over, and the next one is served."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")

from tests.server.samples import LEAK, LEAK_ROW

HERE = {"start": {"line": LEAK_ROW, "character": 8}, "end": {"line": LEAK_ROW, "character": 9}}
ODD_URIS = [
    *("", "x", "file:", "http://[", "file://host/share/a.py", "file:///C%3A/x/a.py", "file:///%00.py", "\ud800"),
    *("file:///%ff%fe.py", "file:///a\nb.py", "file:///" + "a" * 5000, "cell:/x#1", "file:///../../etc/passwd"),
]


class Wire:
    """A server, and whoever writes to its pipe."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "torchmemlint", "server"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.uri = (folder / "a.py").as_uri()
        self._numbers = count(1_000)

    def raw(self, body: bytes, header: bytes | None = None) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((header or b"Content-Length: %d\r\n\r\n" % len(body)) + body)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.raw(json.dumps(message).encode())

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Any) -> Any:
        number = next(self._numbers)
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("id") == number and "method" not in message:
                return message

    def _read(self) -> Any:
        stream = self.process.stdout
        assert stream is not None
        length = 0
        while (line := stream.readline()) != b"\r\n":
            assert line, "the server has ended"
            if line.lower().startswith(b"content-length"):
                length = int(line.partition(b":")[2])
        return json.loads(stream.read(length))

    def open(self, uri: str, text: Any) -> None:
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, *changes: Any, version: Any = 2) -> None:
        about = {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}
        self.notify("textDocument/didChange", about)

    def is_well(self) -> bool:
        where = {"textDocument": {"uri": self.uri}, "range": HERE, "context": {"diagnostics": []}}
        self.change(self.uri, {"text": LEAK}, version=9)
        answer = self.ask("textDocument/codeAction", where)
        return len(answer["result"]) > 1  # more than to fix all, wherever


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """One for all tests: it takes seconds to start, and is to be well after each."""
    folder = tmp_path_factory.mktemp("project")
    wire = Wire(folder)
    where = {"textDocument": {"uri": wire.uri}, "position": {"line": 0, "character": 0}}
    assert wire.ask("textDocument/hover", where)  # before there is a session
    wire.change(wire.uri, {"text": "x"})
    wire.ask("initialize", {"processId": os.getpid(), "rootUri": folder.as_uri(), "capabilities": {}})
    wire.notify("initialized", {})
    wire.open(wire.uri, LEAK)
    yield wire
    wire.process.kill()
    wire.process.communicate()


def test_what_is_no_message(wire: Wire) -> None:
    for body in (b"{", b"[]", b"42", b"null", b'"x"', b"{}", b'{"jsonrpc":"2.0","method":"\xff"}', b"[" * 100_000):
        wire.raw(body)
    for header in (b"Content-Length: abc\r\n\r\n", b"Content-Length: -5\r\n\r\n", b"X: y\r\n\r\n"):
        wire.raw(b"", header)
    for message in (
        *({"id": 1, "method": "x"}, {"jsonrpc": "2.0", "id": 1}, {"jsonrpc": "2.0", "id": [1], "method": "shutdown"}),
        *({"jsonrpc": "2.0", "id": 2, "method": 5}, {"jsonrpc": "2.0", "id": 3, "result": {}}, [{"jsonrpc": "2.0"}]),
        {"jsonrpc": "2.0", "id": {"a": 1}, "method": "textDocument/hover", "params": {}},
    ):
        wire.send(message)
    assert wire.is_well()


def test_wrong_places_kinds_and_order(wire: Wire) -> None:
    for first, last in ((-5, -1), (5, 1), (2**40, 2**62), (1.5, 2), ("x", None)):
        where = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 2**60}}
        wire.change(wire.uri, {"range": where, "text": "#"})
        assert wire.ask("textDocument/codeAction", {"textDocument": {"uri": wire.uri}, "range": where, "context": {}})
    for text in (5, None, [], "\ud800", "import torch\nx = " + "(" * 200_000):
        wire.open(wire.uri.replace("a.py", "b.py"), text)
    for uri in ODD_URIS:
        wire.change(uri, {"text": "x"})
        wire.open(uri, LEAK)
        wire.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        wire.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    for settings in (None, 5, [], {"torchmemlint": 5}, {"torchmemlint": {"select": [None]}}):
        wire.notify("workspace/didChangeConfiguration", {"settings": settings})
    for event in ({}, {"changes": [{"uri": "nonsense", "type": 9}]}):
        wire.notify("workspace/didChangeWatchedFiles", event)
    gone = {"added": [{"uri": "::", "name": ""}], "removed": [{"uri": "file:///nowhere", "name": "x"}]}
    wire.notify("workspace/didChangeWorkspaceFolders", {"event": gone})
    assert wire.ask("workspace/executeCommand", {"command": "rm", "arguments": [{}]})["error"]
    assert wire.is_well()


@pytest.mark.slow
def test_a_document_beyond_the_limit_holds_nothing_up(wire: Wire) -> None:
    wire.open(wire.uri.replace("a.py", "b.py"), "import torch\n" + "x = 1\n" * 1_750_000)
    assert wire.is_well()


METHODS = [
    *(f"textDocument/{name}" for name in "hover codeAction diagnostic completion didChange didClose didOpen".split()),
    *(
        "workspace/diagnostic",
        "codeAction/resolve",
        "workspace/executeCommand",
        "notebookDocument/didOpen",
        "$/setTrace",
    ),
]
KEYS = "textDocument uri position line character range start end context diagnostics version text items data".split()


def anything(choose: random.Random, uri: str, depth: int = 0) -> Any:
    if depth > 2 or choose.random() < 0.4:
        return choose.choice([None, True, -1, 5, 2**70, 1.5, "", uri, "\0", [], {}])
    some = [anything(choose, uri, depth + 1) for _ in range(choose.randrange(4))]
    return some if choose.random() < 0.3 else {choose.choice(KEYS): one for one in some}


def test_random_messages(wire: Wire) -> None:
    choose = random.Random(1)
    for _ in range(150):
        method, params = choose.choice(METHODS), anything(choose, wire.uri)
        if choose.random() < 0.4:
            wire.notify(method, params)
        else:
            answer = wire.ask(method, params)
            assert "result" in answer or answer["error"]["code"]
    wire.open(wire.uri, LEAK)
    assert wire.is_well()
