"""Writing a file so that a reader sees either the old content or the new, never half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, create: bool = False) -> None:
    """Put `data` in the place of the existing file `path`, keeping its mode and, where allowed, its owner.

    With `create` it need not exist: then it comes with the mode that the process gives new files.

    A symbolic link stays: the file it points to is replaced. (Another hard link to it keeps the old content.)
    Nothing is left behind on failure. Raises OSError: no such file, not writable, disk full.
    """
    target = path.resolve(strict=not create)
    status = target.stat() if not create or target.exists() else None
    if status is not None and not os.access(target, os.W_OK):
        # A rename would succeed on a file that its owner made read-only.
        raise PermissionError(f"{path} is read-only")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if status is not None and hasattr(os, "chown"):
            # Before chmod, since giving a file away clears its set-id bits.
            with contextlib.suppress(OSError):
                os.chown(temporary, status.st_uid, status.st_gid)
        temporary.chmod(_mode_of_new_files() if status is None else status.st_mode & 0o7777)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


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
