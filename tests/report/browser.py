"""A real browser, spoken to by its debugging protocol through two pipes: no driver is needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def different_rows(picture: bytes) -> int:
    """How many rows of pixels of an 8-bit PNG without interlacing (a browser's screenshot) differ from each other."""
    data = picture
    assert data.startswith(b"\x89PNG")
    width, _, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8
    packed, at = b"", 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += length + 12
    rows = zlib.decompress(packed)
    stride = width * {2: 3, 6: 4}[kind] + 1
    return len({rows[at : at + stride] for at in range(0, len(rows), stride)})


class Tab:
    """One page of the browser. What happens in it besides answers is kept in `events`."""

    def __init__(self, send: int, receive: int) -> None:
        self._send = send
        self._receive = receive
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[tuple[str, dict[str, Any]]] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append((answer["method"], answer["params"]))

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            data = os.read(self._receive, 1 << 20)
            assert data, "the browser has gone"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def go(self, address: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Show a page and wait until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._load("about:blank")  # a change of what stands behind # alone would load nothing
        self._load(address)

    def _load(self, address: str) -> None:
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not any(method == "Page.loadEventFired" for method, _ in self.events):
            message = self._next()
            if "method" in message:
                self.events.append((message["method"], message["params"]))

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextmanager
def tab(profile: Path) -> Iterator[Tab]:
    """A tab of a browser of its own."""
    to_read, to_send = os.pipe()
    to_receive, to_write = os.pipe()

    def place() -> None:  # the browser reads from 3 and writes to 4
        first, second = os.dup(to_read), os.dup(to_write)
        os.dup2(first, 3)
        os.dup2(second, 4)

    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
    command = [CHROMIUM or "chromium", *options, f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        command, preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(to_read)
    os.close(to_write)
    try:
        one = Tab(to_send, to_receive)
        one.open()
        yield one
    finally:
        process.kill()
        process.wait(30)
        os.close(to_send)
        os.close(to_receive)
