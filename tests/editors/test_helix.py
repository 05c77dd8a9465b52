"""Helix, in a terminal of its own: the problem is shown, the menu of actions opens, its first one is the fix."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from editors.setting import EDITORS, FIXED, editor, environment, make_project, needs_server

pty = pytest.importorskip("pty", reason="pseudo-terminals are a matter of POSIX")

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>]")


class Terminal:
    """A program in a terminal of 40 lines by 160 columns."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path) -> None:
        self.output = b""
        self.pid, self.file = pty.fork()
        if self.pid == 0:  # pragma: no cover (the child)
            os.chdir(cwd)
            os.execve(command[0], command, env)
        self._resize()
        os.set_blocking(self.file, False)

    def _resize(self) -> None:
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))

    def shown(self) -> str:
        """All that has been written so far, without what moves the cursor."""
        try:
            while chunk := os.read(self.file, 65536):
                self.output += chunk
        except (BlockingIOError, OSError):  # nothing more for now, or the program has ended
            pass
        return ESCAPES.sub(b"", self.output).decode("utf-8", "replace")

    def keys(self, keys: str) -> None:
        """Type."""
        os.write(self.file, keys.encode())

    def wait(self, what: str, met: Callable[[], Any], seconds: float = 40) -> None:
        """Wait until something is so."""
        end = time.monotonic() + seconds
        while not met():
            assert time.monotonic() < end, f"waited in vain for {what}:\n{self.shown()[-3000:]}"
            time.sleep(0.05)

    def close(self) -> None:
        """End the program."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.file)


@needs_server
def test_it_shows_the_problem_and_fixes_it(tmp_path: Path) -> None:
    helix = editor("hx", "hx")
    program = make_project(tmp_path / "project")
    env = environment(tmp_path, TERM="xterm-256color")
    settings = tmp_path / "home" / ".config" / "helix"
    settings.mkdir(parents=True)
    shutil.copyfile(EDITORS / "helix" / "languages.toml", settings / "languages.toml")

    line = 1 + next(i for i, text in enumerate(program.read_text().splitlines()) if "running_loss +=" in text)
    terminal = Terminal([helix, f"{program}:{line}"], env, program.parent)
    try:
        terminal.wait("a mark beside the line", lambda: "●" in terminal.shown())
        terminal.keys("]d")  # select the next problem, which is on this line
        terminal.wait("the problem", lambda: "keeps every" in terminal.shown())
        terminal.keys(" a")
        terminal.wait("the menu of actions", lambda: "Fix TML101" in terminal.shown())
        for title in ("Ignore TML101 on this line", "Explain TML101"):
            assert title in terminal.shown()
        terminal.keys("\r")
        time.sleep(0.5)
        terminal.keys(":write\r")
        terminal.wait("the fix in the file", lambda: FIXED in program.read_text())
    finally:
        terminal.close()


@needs_server
def test_it_takes_the_configuration(tmp_path: Path) -> None:
    helix = editor("hx", "hx")
    env = environment(tmp_path)
    settings = tmp_path / "home" / ".config" / "helix"
    settings.mkdir(parents=True)
    shutil.copyfile(EDITORS / "helix" / "languages.toml", settings / "languages.toml")
    said = subprocess.run([helix, "--health", "python"], env=env, capture_output=True, text=True, timeout=60).stdout
    assert re.search(r"✓\S* torchmemlint: \S*" + re.escape(str(tmp_path / "bin" / "torchmemlint")), said), said
