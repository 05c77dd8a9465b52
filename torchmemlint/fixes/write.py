"""Writing a file so that a reader sees either the old content or the new, never half of one."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from torchmemlint.regular import LEFTOVER, read_regular

if sys.platform != "win32":
    import fcntl

_NAME = 150  # bytes of the file's name in that of the other


class ChangedMeanwhile(OSError):  # noqa: N818 (nothing is wrong)
    """The file is no longer what was read."""


def write_atomically(path: Path, data: bytes, *, create: bool = False, before: bytes | None = None) -> None:
    """Put `data` in the place of the existing file `path`, keeping its mode and, where allowed, its owner.

    With `create` it need not exist: then it comes with the mode that the process gives new files. With `before` it
    must have this content still, or ChangedMeanwhile is raised: somebody else has written to it.

    A symbolic link stays: the file it points to is replaced. A file that has other names (hard links) is written where
    it lies, so that all of them name the new content: only there may a reader see half of it.
    Nothing is left behind on failure. Raises OSError: no such file, not writable, disk full.
    """
    target = path.resolve(strict=not create)
    status = target.stat() if not create or target.exists() else None
    if status is not None and not os.access(target, os.W_OK):
        # A rename would succeed on a file that its owner made read-only.
        raise PermissionError(f"{path} is read-only")
    prefix = os.fsencode(f".{target.name}")[:_NAME].decode("utf-8", "ignore")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f"{prefix}.", suffix=LEFTOVER)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            _claim(file.fileno())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if status is not None and hasattr(os, "chown"):
            # Before chmod, since giving a file away clears its set-id bits.
            with contextlib.suppress(OSError):
                os.chown(temporary, status.st_uid, status.st_gid)
        temporary.chmod(_mode_of_new_files() if status is None else status.st_mode & 0o7777)
        if before is not None and read_regular(target) != before:
            raise ChangedMeanwhile(f"{path} has changed since it was read")
        if status is not None and status.st_nlink > 1:
            _write_in_place(target, data)
            temporary.unlink()
        else:
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _write_in_place(path: Path, data: bytes) -> None:
    """Put `data` into a file; the old content again where that fails."""
    with path.open("r+b") as file:
        old = file.read()
        try:
            _overwrite(file, data)
        except OSError:
            _overwrite(file, old)
            raise


def _overwrite(file: BinaryIO, data: bytes) -> None:
    file.seek(0)
    file.write(data)
    file.flush()
    file.truncate(len(data))
    os.fsync(file.fileno())


def remove_leftovers(found: Iterable[Path]) -> Iterator[Path]:
    """Remove what killed runs have left half written, and give what could be removed.

    What another run is writing right now is left alone.
    """
    for path in found:
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                if _claim(handle):
                    path.unlink()
                    yield path
            finally:
                os.close(handle)


def _claim(handle: int) -> bool:
    """Take hold of an open file until it is closed, however that comes about; false if another process has."""
    if sys.platform == "win32":
        return True  # what is open cannot be removed there
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _mode_of_new_files() -> int:
    """What `open` would give one; a process can only be asked for its mask by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Make the rename itself last through a power cut, where the system has such a thing."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
