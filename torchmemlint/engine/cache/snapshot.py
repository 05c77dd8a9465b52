"""The files of a project as they are now, told by their content."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

from torchmemlint.flow.texts import Texts, python_files
from torchmemlint.immutable import immutable
from torchmemlint.regular import read_regular

# A file that changed so lately may change again without another time stamp: FAT counts two seconds. Where a stamp is no
# multiple of 10 ms, it is counted finer (Linux: by ticks of 10 ms at most, with a remainder; NTFS: by 100 ns).
SETTLED = 2.0  # seconds
_FINE = 20  # how much shorter it is there
_COARSE_STEP = 10_000_000  # ns
_MOST_READ = 64_000_000  # bytes; of a larger file, which is no program, what the file system says must do


@immutable()
class Stamp:
    """What the file system says of a file, and the digest of its content when it said so."""

    size: int  # bytes
    changed: int  # nanoseconds: of the content, or of what the file system holds of it
    digest: str


def digest_of(data: bytes) -> str:
    """What tells contents apart."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Snapshot:
    """Answers what the project is asked, and keeps the answers. `stamps`: of earlier runs, by absolute path."""

    def __init__(self, root: Path, stamps: Mapping[str, Stamp]) -> None:
        self.root = root
        self.fresh: dict[str, Stamp] = {}  # stamps that were not known before
        self._stamps = stamps
        self._began = time.time()
        self._digests: dict[str, str | None] = {}
        self._names: dict[str, frozenset[str]] = {}  # of folders
        self._mentions: dict[str, dict[str, int] | None] = {}
        self._unchanged: set[str] = set()
        self._unsettled: set[str] = set()
        self._all: str | None = None
        self._texts: Texts | None = None

    def digest(self, path: str) -> str | None:
        """The digest of a file's content; None where it cannot be read."""
        if path not in self._digests:
            try:
                self._digests[path] = self._digest(path)
            except OSError:
                self._digests[path] = None
        return self._digests[path]

    def has_changed(self, path: str) -> bool:
        """Is there no stamp of it, or another one than it would get now?"""
        self.digest(path)
        return path not in self._unchanged

    def is_settled(self, path: str) -> bool:
        """Did a file stay as it is for long enough to be sure that the run has read what its digest is of?"""
        self.digest(path)
        return path not in self._unsettled

    def has(self, path: str) -> bool:
        """Is it there?"""
        folder, name = os.path.split(path)
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(folder))  # noqa: PTH208 (names are all that is wanted)
            except OSError:
                self._names[folder] = frozenset()
        return name in self._names[folder]

    def mentions(self, phrase: str) -> dict[str, int] | None:
        """Which files of the project have a phrase, and how often; None for a project that is too large."""
        if phrase not in self._mentions:
            if self._texts is None:
                self._texts = Texts(self.root)
            found = self._texts.mentioning(phrase)
            self._mentions[phrase] = None if found is None else {str(path): count for path, count in found.items()}
        return self._mentions[phrase]

    def everything(self) -> str:
        """The digest of all that the project can be searched in."""
        if self._all is None:
            names = python_files(str(self.root))
            parts = [f"{name}\0{self.digest(name)}" for name in names] if names is not None else ["too large"]
            self._all = digest_of("\0".join(parts).encode("utf-8", "surrogatepass"))
        return self._all

    def _digest(self, path: str) -> str:
        found = os.stat(path)  # noqa: PTH116 (asked of thousands of files)
        changed = max(found.st_mtime_ns, found.st_ctime_ns)
        wait = SETTLED / (1 if changed % _COARSE_STEP == 0 else _FINE)
        if self._began - changed / 1e9 < wait:
            self._unsettled.add(path)
        known = self._stamps.get(path)
        if known is not None and known.size == found.st_size and known.changed == changed:
            self._unchanged.add(path)
            return known.digest
        if found.st_size > _MOST_READ:
            digest = digest_of(f"{found.st_size}\0{changed}".encode())
        else:
            digest = digest_of(read_regular(path))
        if path not in self._unsettled:
            self.fresh[path] = Stamp(found.st_size, changed, digest)
        return digest
