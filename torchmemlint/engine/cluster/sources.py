"""The sources of a project, to be taken to another machine: with them, its files are checked there as they are here.

The analysis asks three things of a project: what lies in a folder that an import may lead to, what is in a file, and
which files are searched for a word. Imports lead through folders whose names are identifiers only, so all others stay
here, but for those with files to check or to search.
"""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from torchmemlint.config.settings import DEFAULT_EXCLUDED_NAMES
from torchmemlint.flow.names.finder import Finder
from torchmemlint.flow.project import MAX_FILE, Files
from torchmemlint.flow.texts import Texts, python_files
from torchmemlint.immutable import immutable
from torchmemlint.source.decoding import UnreadableFile, decode, read

MAX_BYTES = 256_000_000  # of a project's sources
_NEVER = frozenset({"__pycache__", "node_modules"})  # no Python module lies there


class TooLargeError(Exception):
    """A project with more source than may be taken anywhere; the message says how much is."""


@immutable()
class Sources:
    """All of a project that analyses ask for. Paths are absolute, as they are on the machine that it lies on."""

    root: str
    listings: dict[str, frozenset[str]]  # by folder: the Python files in it, and the folders that imports may lead to
    contents: dict[str, bytes]  # by file; too long ones, which are not read for context, only where they are checked
    searched: list[str] | None  # the files that are searched for words; None where they are too many

    def pack(self) -> bytes:
        """As bytes, a fifth of the size."""
        return zlib.compress(pickle.dumps((self.root, self.listings, self.contents, self.searched), protocol=5), 1)

    @classmethod
    def unpack(cls, data: bytes) -> Sources:
        """What `pack` made the bytes of."""
        return cls(*pickle.loads(zlib.decompress(data)))

    def files(self) -> Files:
        """The project's files as an analysis sees them."""
        return _Travelled(self)


def gather(root: Path, files: Iterable[tuple[Path, bytes]]) -> Sources:
    """The sources around some files of a project, whose contents are given. Raises `TooLargeError`."""
    searched = python_files(str(root))
    listings: dict[str, frozenset[str]] = {}
    contents = {str(path): data for path, data in files}
    total = sum(map(len, contents.values()))
    for folder in _tops(root, [Path(path) for path in contents]):
        for name in _walk(folder, root, listings):
            if name not in contents and (data := _read(name)) is not None:
                contents[name] = data
                total += len(data)
                if total > MAX_BYTES:
                    raise TooLargeError(f"more than {MAX_BYTES // 10**6} MB of source below {root}")
    return Sources(str(root), listings, contents, searched)


def _tops(root: Path, files: Sequence[Path]) -> Iterator[Path]:
    """The folders that imports start from: the project's, and those of its files and of the packages around these."""
    yield root
    for folder in dict.fromkeys(path.parent for path in files):
        yield folder
        while (folder / "__init__.py").is_file() and folder != folder.parent:
            folder = folder.parent
            yield folder


def _walk(top: Path, root: Path, listings: dict[str, frozenset[str]]) -> Iterator[str]:
    """The Python files in a folder and below, where that was not walked yet. What lies outside of `root` is not walked,
    only listed: the folder itself.
    """
    inside = top.is_relative_to(root)
    real_root = os.path.realpath(root)
    stack = [(str(top), inside and _is_searched(top, root))]
    while stack:
        folder, searched = stack.pop()
        if folder in listings:
            continue
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        searched = searched and not any(entry.name == "pyvenv.cfg" for entry in entries)
        names = []
        for entry in entries:
            name = entry.name
            if name.endswith(".py"):
                names.append(name)
                if _is_file(entry) and _is_within(entry, real_root):
                    yield entry.path
            elif name.isidentifier():
                if _is_folder(entry):
                    names.append(name)
                    if inside and name not in _NEVER and _leads_on(entry, real_root):
                        stack.append((entry.path, searched and _may_be_searched(name)))
            elif inside and searched and _may_be_searched(name) and entry.is_dir(follow_symlinks=False):
                stack.append((entry.path, True))
        listings[folder] = frozenset(names)


def _is_searched(folder: Path, root: Path) -> bool:
    parts = folder.relative_to(root).parts
    return all(map(_may_be_searched, parts))


def _may_be_searched(name: str) -> bool:
    return not name.startswith(".") and name not in DEFAULT_EXCLUDED_NAMES


def _leads_on(entry: os.DirEntry[str], real_root: str) -> bool:
    """Is it a folder to go into? Links are followed within the project, but not back to where they stand."""
    if not entry.is_symlink():
        return True
    target, here = os.path.realpath(entry.path), os.path.realpath(Path(entry.path).parent)
    return _is_within(entry, real_root) and not (here + os.sep).startswith(target + os.sep)


def _is_within(entry: os.DirEntry[str], real_root: str) -> bool:
    """Does it lie in the project, and not elsewhere by a link? What lies there is nobody's business on a worker."""
    return not entry.is_symlink() or os.path.realpath(entry.path).startswith(real_root + os.sep)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads back to itself
        return False


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _read(name: str) -> bytes | None:
    try:
        data = read(Path(name), MAX_FILE + 1)
    except UnreadableFile:
        return None
    return data if len(data) <= MAX_FILE else None


class _Travelled(Files):
    """A project whose files lie elsewhere."""

    def __init__(self, sources: Sources) -> None:
        root = Path(sources.root)
        super().__init__(root)
        self._contents = sources.contents
        self.finder = _Finder(root, sources.listings)
        self.texts = _Texts(root, sources)

    def text(self, path: Path) -> str | None:
        data = self._contents.get(str(path))
        return decode(data).text if data is not None and len(data) <= MAX_FILE else None


class _Finder(Finder):
    def __init__(self, root: Path, listings: dict[str, frozenset[str]]) -> None:
        super().__init__(root)
        self._listings = listings

    def is_folder(self, path: str) -> bool:
        above, name = os.path.split(path)
        return path in self._listings or name in self._listings.get(above, frozenset())

    def names_in(self, folder: str) -> frozenset[str]:
        return self._listings.get(folder, frozenset())


class _Texts(Texts):
    def __init__(self, root: Path, sources: Sources) -> None:
        super().__init__(root)
        self._sources = sources

    def names(self) -> list[str] | None:
        return self._sources.searched

    def data(self, name: str) -> bytes | None:
        return self._sources.contents.get(name)
