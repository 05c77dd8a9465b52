"""Reading files that may be anything, and may lie anywhere: what a tree holds, nobody has promised."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST = 16_000_000  # bytes of a file that is read for what it says of the project: settings, lists, patterns


LEFTOVER = ".torchmemlint-tmp"  # how a file ends that is to take another's place; a killed run may leave one


class NotRegularError(OSError):
    """What should be a file is a pipe, a device, a socket."""


def read_regular(path: Path | str, most: int | None = None) -> bytes:
    """The bytes of a regular file, `most` of them at most. Raises OSError.

    What is a pipe or a device, or has become one since it was listed, is neither waited for nor read.
    """
    with open(path, "rb", opener=_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotRegularError(errno.EINVAL, "not a regular file")
        return file.read() if most is None else file.read(most)


def text_of(path: Path, *, encoding: str = "utf-8", errors: str = "strict", most: int | None = MOST) -> str:
    """The text of a regular file of `most` bytes at most. Raises OSError and UnicodeDecodeError."""
    data = read_regular(path, None if most is None else most + 1)
    if most is not None and len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most / 1_000_000:g} MB")
    return data.decode(encoding, errors).replace("\r\n", "\n").replace("\r", "\n")


def size_of(path: Path) -> int:
    """The bytes of a file; 0 where nobody may know, of which reading it will say why."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def is_within(path: Path | str, folder: Path | str) -> bool:
    """Does a path lie in a folder, wherever links on the way lead?"""
    real, top = os.path.realpath(path), os.path.realpath(folder)
    return real == top or real.startswith(top.rstrip(os.sep) + os.sep)


def _at_once(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
