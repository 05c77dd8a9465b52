"""What a run needs of the machine and shares with other runs: whether several can go side by side.

Knows nothing of torch.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torchmemlint.engine.pool import cpus
from torchmemlint.immutable import immutable

_SHARE = 0.8
"""The share of the memory that is free which runs may take."""
_MOST = 20  # files that are told
_NO_FOLDER = -1  # where a path is not seen from an open folder


@immutable()
class Demands:
    """Of one run: the cores that it kept busy, the memory that it took, and the files that it wrote."""

    cores: float = 0.0  # on average; 0.0 where that is not known
    memory: int = 0  # bytes at most; 0 likewise
    writes: tuple[str, ...] = ()  # without those of its own folders

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Demands:
        """Back from them."""
        return cls(values["cores"], values["memory"], tuple(values["writes"]))


NO_DEMANDS = Demands()


def room_for(demands: Demands) -> int:
    """How many such runs can go side by side here without being in each other's way."""
    free = _free_memory()
    if not demands.cores or not demands.memory or demands.writes or free is None:
        return 1
    return max(1, min(int(cpus() / max(1.0, demands.cores)), int(_SHARE * free / demands.memory)))


def _free_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        told = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
        return min(told["MemAvailable"], *_left_of_group())
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _left_of_group() -> Iterable[int]:
    """What the group of processes may still take, where the system has set it a limit."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        if limit != "max":
            return [int(limit) - int((group / "memory.current").read_text(encoding="ascii")), sys.maxsize]
    except (OSError, ValueError):
        pass
    return [sys.maxsize, sys.maxsize]


class Observer:
    """Watches what this process does; `log` is a file into which its children write as well."""

    def __init__(self, own: Iterable[Path], log: Path) -> None:
        self._log = log
        self._own = tuple(f"{_whole(folder)}{os.sep}" for folder in [*map(str, own), *_caches()])
        self._temporary: set[str] = set()
        self._seen: set[str] = set()
        self._active = False
        self._began = time.monotonic(), _busy()
        tempfile.gettempdir()  # tries whether it can write there, the first time

    def start(self) -> None:
        """From now on. (A hook like this one cannot be taken away again; it can be told to do nothing.)"""
        self._active = True
        self._began = time.monotonic(), _busy()
        sys.addaudithook(self._audit)

    def demands(self, written: Iterable[str] = ()) -> Demands:
        """What there was to see until now, and no more; and files that are known to be written."""
        self._active = False
        for path in written:
            self._note(path)
        began, busy = self._began
        elapsed = time.monotonic() - began
        cores = (_busy() - busy) / elapsed if elapsed > 0 else 0.0
        return Demands(max(1.0, cores), _resident(), tuple(self._writes()))

    def _writes(self) -> list[str]:
        try:
            written = self._log.read_text(encoding="utf-8", errors="replace").split("\0")
        except OSError:
            return []
        return sorted({one for one in written if one})[:_MOST]

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._active:
            return
        if event == "open":
            path, mode, flags = arguments
            if _writes(mode, flags) and not (isinstance(path, str) and Path(path).is_dir()):  # for a file in it
                self._note(path)
        elif event in ("tempfile.mkstemp", "tempfile.mkdtemp"):
            self._temporary.add(_whole(arguments[0]))
        elif event in ("os.remove", "os.rmdir"):
            if arguments[1] == _NO_FOLDER:  # else it is what a folder holds that goes itself
                self._note(arguments[0])
        elif event == "os.rename":
            for path in arguments[:2]:
                self._note(path)
        elif event == "socket.bind":
            address = arguments[1]
            if isinstance(address, tuple) and len(address) > 1 and address[1]:
                self._note_text(f"port {address[1]}")

    def _note(self, path: Any) -> None:
        if not isinstance(path, str | bytes | os.PathLike):  # a number of an open file
            return
        text = _whole(os.fsdecode(path))
        if text.startswith((*self._own, "/dev/", "/proc/")) or "__pycache__" in text:
            return
        if not any(text == one or text.startswith(f"{one}{os.sep}") for one in self._temporary):
            self._note_text(text)

    def _note_text(self, text: str) -> None:
        if text in self._seen or len(self._seen) >= _MOST:
            return
        self._seen.add(text)
        active, self._active = self._active, False  # what follows is ours
        try:
            with self._log.open("a", encoding="utf-8", errors="replace") as log:
                log.write(f"{text}\0")
        finally:
            self._active = active


def _writes(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _caches() -> list[str]:
    """Folders made to be shared by programs that run at once."""
    named = [os.environ.get(name, "") for name in ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME")]
    home = os.environ.get("HOME", "")
    return [*filter(None, named), *([f"{home}/.cache"] if home else [])]


def _whole(path: str | os.PathLike[str]) -> str:
    """A path from the top, links kept."""
    return os.path.normpath(Path(path).absolute())


def _busy() -> float:
    """The seconds that the processor has worked for this process and for its children that ended."""
    told = os.times()
    return told.user + told.system + told.children_user + told.children_system


def _resident() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return int(own + children) * unit
