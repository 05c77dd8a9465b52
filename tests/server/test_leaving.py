"""What is left of a server whose editor is gone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from tests.server.samples import LEAK

PATIENCE = 60


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_an_editor_that_leaves_without_a_word_leaves_nothing_running(tmp_path) -> None:
    for number in range(40):
        (tmp_path / f"module_{number}.py").write_text(LEAK * 20)
    server = subprocess.Popen(
        [sys.executable, "-m", "torchmemlint", "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    options = {"settings": {"workspaceDiagnostics": "all"}}
    parameters = {"processId": None, "capabilities": {}, "rootUri": tmp_path.as_uri(), "initializationOptions": options}
    send(server, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters})
    send(server, {"jsonrpc": "2.0", "method": "initialized", "params": {}})
    helpers = wait_for(lambda: children(server.pid))
    server.stdin.close()
    server.stdout.close()
    assert server.wait(PATIENCE) == 0
    wait_for(lambda: not [pid for pid in helpers if Path(f"/proc/{pid}").exists()])


def send(server: subprocess.Popen, message: dict) -> None:
    data = json.dumps(message).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
    server.stdin.flush()


def children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended since
            found += [int(child) for child in task.read_text().split()]
    return found


def wait_for(condition):
    until = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.1)
    return found
