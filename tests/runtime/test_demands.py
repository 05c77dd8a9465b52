"""What a run needs of the machine. Without torch; in processes of their own, as an audit hook stays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from torchmemlint.runtime import demands
from torchmemlint.runtime.demands import Demands, room_for


def observed(folder: Path, program: str) -> dict[str, Any]:
    """What a program is seen to need that runs in a folder; its run's own files are in `own`."""
    (folder / "own").mkdir(exist_ok=True)
    script = f"""
        import json, os, sys
        from dataclasses import asdict
        from pathlib import Path
        from torchmemlint.runtime.demands import Observer
        observer = Observer([Path("own")], Path("own/writes"))
        observer.start()
        exec({dedent(program)!r})
        json.dump(asdict(observer.demands()), sys.stdout)
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(script)], cwd=folder, capture_output=True, text=True, check=True
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_what_is_written_is_told_also_of_children(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("")
    told = observed(
        tmp_path,
        """
        open("log.txt", "a").close()
        os.close(os.open("low", os.O_WRONLY | os.O_CREAT))
        os.remove("old")
        if os.fork() == 0:
            Path("of_child").write_text("")
            os._exit(0)
        os.wait()
        """,
    )
    assert told["writes"] == [str(tmp_path / name) for name in ("log.txt", "low", "of_child", "old")]
    assert told["cores"] >= 1.0
    assert told["memory"] > 1 << 20


def test_what_nobody_shares_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("1")
    told = observed(
        tmp_path,
        """
        import socket, tempfile
        open("data.txt").read()
        open("own/result", "w").close()
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "x").write_text("")
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x")
        open(os.devnull, "w").close()
        socket.socket().bind(("127.0.0.1", 0))
        """,
    )
    assert told["writes"] == []


def test_a_port_of_its_own_choice_is_told(tmp_path: Path) -> None:
    told = observed(
        tmp_path,
        """
        import socket
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            free = one.getsockname()[1]
        socket.socket().bind(("127.0.0.1", free))
        """,
    )
    assert [one.split()[0] for one in told["writes"]] == ["port"]


@pytest.mark.parametrize(
    ("cores", "memory", "writes", "free", "room"),
    [
        (1.0, 1 << 30, (), 64 << 30, 8),
        (1.9, 1 << 30, (), 64 << 30, 4),
        (8.0, 1 << 30, (), 64 << 30, 1),
        (1.0, 16 << 30, (), 64 << 30, 3),  # of four fifths of what is free
        (1.0, 128 << 30, (), 64 << 30, 1),
        (1.0, 1 << 30, ("/home/me/best.pt",), 64 << 30, 1),
        (1.0, 1 << 30, (), None, 1),  # the system does not tell
        (0.0, 0, (), 64 << 30, 1),  # nobody looked
    ],
)
def test_room(
    monkeypatch: pytest.MonkeyPatch, cores: float, memory: int, writes: tuple[str, ...], free: int | None, room: int
) -> None:
    monkeypatch.setattr(demands, "cpus", lambda: 8)
    monkeypatch.setattr(demands, "_free_memory", lambda: free)
    assert room_for(Demands(cores, memory, writes)) == room


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="Linux tells it there")
def test_this_machine_tells_its_memory() -> None:
    free = demands._free_memory()
    assert free is not None
    assert free > 1 << 20
