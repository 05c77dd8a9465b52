"""The text of a whole project, searched for a word before anything is parsed."""

from __future__ import annotations

import bisect
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from torchmemlint.config.settings import DEFAULT_EXCLUDED_NAMES
from torchmemlint.flow.names.suites import is_test
from torchmemlint.regular import is_within, read_regular

MAX_FILES = 20_000  # a project with more files, or folders, is not searched
MAX_BYTES = 64_000_000  # of text that is kept in memory
MAX_ANSWERS = 20_000  # files that are named in the answers to earlier searches, before these are forgotten
MAX_FILE = 1_000_000  # bytes; longer files are tables or generated
_TESTS = frozenset({"test", "tests", "testing"})
# What defines a name: a search for `def name` looks only at what follows the word anywhere, of which it is a hundredth.
_DEFINING = re.compile(r"(class|def|as) (\w+)")


class Texts:
    """The Python files below `root` but for tests, read when something is first looked for.

    `edited` are texts that count in place of what the disk has.
    """

    def __init__(self, root: Path, edited: Mapping[Path, str] | None = None) -> None:
        self.root = root
        self.edited: Mapping[Path, str] = edited or {}
        self._text: bytes | bytearray | None = None
        self.was_read = False
        self.was_asked = False  # since somebody last set this to False
        self._answers: dict[str, dict[Path, int]] = {}
        self._known: frozenset[str] = frozenset()
        self._files: list[str] = []
        self._ends: list[int] = []  # of each file within the text
        self._defined: dict[str, tuple[bytes, list[int]]] = {}  # by word: the names that follow it, and likewise

    def mentioning(self, phrase: str) -> dict[Path, int] | None:
        """The files in which a phrase stands between word boundaries, and how often; None for too large a project."""
        self._read_once()
        if self._text is None:
            return None
        wanted = phrase.encode()
        found = dict(self._in_text(phrase, self._text))
        for path, text in self.edited.items():
            found.pop(path, None)
            count = (
                sum(1 for _ in _places(wanted, b"\n" + text.encode("utf-8", "surrogatepass") + b"\n\n"))
                if self.holds(path)
                else 0
            )
            if count:
                found[path] = count
        return dict(sorted(found.items())) if self.edited else found

    def _in_text(self, phrase: str, text: bytes | bytearray) -> dict[Path, int]:
        """What `mentioning` tells of the files as they were read; kept, as many files ask for the same few phrases."""
        if phrase in self._answers:
            return self._answers[phrase]
        ends = self._ends
        wanted = phrase
        if defining := _DEFINING.fullmatch(phrase):
            word, wanted = defining.groups()
            if word not in self._defined:
                self._defined[word] = _names_after(word, text, ends)
            text, ends = self._defined[word]
        found: dict[Path, int] = {}
        for start in _places(wanted.encode(), text):
            path = Path(self._files[bisect.bisect_right(ends, start)])
            found[path] = found.get(path, 0) + 1
        if sum(1 + len(answer) for answer in self._answers.values()) > MAX_ANSWERS:
            self._answers.clear()
        self._answers[phrase] = found
        return found

    def holds(self, path: Path) -> bool:
        """Is this one of the files?"""
        self._read_once()
        return str(path) in self._known

    def names(self) -> list[str] | None:
        """The files, in order; None where there are too many."""
        return python_files(str(self.root))

    def data(self, name: str) -> bytes | None:
        """What is in a file (of a long one, more than `MAX_FILE` bytes of it); None where it cannot be read."""
        try:
            return read_regular(name, MAX_FILE + 1)
        except OSError:
            return None

    def _read_once(self) -> None:
        self.was_asked = True
        if not self.was_read:
            self.was_read = True
            self._read()
            self._known = frozenset(self._files)

    def _read(self) -> None:
        text = bytearray()
        names = self.names()
        for name in names or ():
            data = self.data(name)
            if data is None or len(data) > MAX_FILE or is_test(name.rpartition(os.sep)[2], data):
                continue
            if len(text) + len(data) >= MAX_BYTES:
                return
            text += data
            text += b"\n"
            self._files.append(name)
            self._ends.append(len(text))
        if names is not None:
            text += b"\n"
            self._text = text


def _places(wanted: bytes, text: bytes | bytearray) -> Iterator[int]:
    """Where a phrase stands between word boundaries (`.step(` has its own); the text has a byte before and after it."""
    begins, ends = _is_word(wanted[0]), _is_word(wanted[-1])
    start = text.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        if not ((begins and _is_word(text[start - 1])) or (ends and _is_word(text[end]))):
            yield start
        start = text.find(wanted, end)


def _names_after(word: str, text: bytes | bytearray, ends: Sequence[int]) -> tuple[bytes, list[int]]:
    """The names that stand after a word and a blank, each on a line, and where those of each file end."""
    after = re.compile(rb"%b (?<![\w\x80-\xff]%b )(?=([\w\x80-\xff]+))" % (word.encode(), word.encode()))
    names = bytearray(b"\n")
    found: list[int] = []
    for start, end in itertools.pairwise((0, *ends)):
        names += b"".join(name + b"\n" for name in after.findall(text, start, end))
        found.append(len(names))
    return bytes(names), found


def _is_word(byte: int) -> bool:
    """Is it a letter, digit or underscore (or a part of a letter outside ASCII)?"""
    return byte == 95 or byte >= 128 or chr(byte).isalnum()


def python_files(root: str) -> list[str] | None:
    """All Python files but those in folders of tests or that no run checks, in order; None where there are too many."""
    found: list[str] = []
    folders = [root]
    for folder in folders:  # grows as it goes
        if max(len(folders), len(found)) > MAX_FILES:
            return None
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        if any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            name = entry.name
            if name.startswith(".") or name in DEFAULT_EXCLUDED_NAMES or name in _TESTS:
                continue
            if name.endswith(".py"):
                if _is_file(entry, root):
                    found.append(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    return sorted(found) if len(found) <= MAX_FILES else None


def _is_file(entry: os.DirEntry[str], root: str) -> bool:
    """Is it a file, or a link to one that is no less of the project?"""
    try:
        return entry.is_file() and (not entry.is_symlink() or is_within(entry.path, root))
    except OSError:  # a link that leads back to itself
        return False
