"""Writing a file so that a reader sees either the old content or the new, never half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Put `data` in the place of the existing file `path`, keeping its mode and, where allowed, its owner.

    A symbolic link stays: the file it points to is replaced. (Another hard link to it keeps the old content.)
    Nothing is left behind on failure. Raises OSError: no such file, not writable, disk full.
    """
    target = path.resolve(strict=True)
    status = target.stat()
    if not os.access(target, os.W_OK):
        # A rename would succeed on a file that its owner made read-only.
        raise PermissionError(f"{path} is read-only")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if hasattr(os, "chown"):
            # Before chmod, since giving a file away clears its set-id bits.
            with contextlib.suppress(OSError):
                os.chown(temporary, status.st_uid, status.st_gid)
        temporary.chmod(status.st_mode & 0o7777)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself last through a power cut, where the system has such a thing."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
