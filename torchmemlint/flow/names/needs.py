"""What the analysis of a file asks of the rest of its project: while the answers stay the same, so do its findings."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from torchmemlint.immutable import immutable


@immutable()
class Needs:
    """What the findings of a file rest on, besides the file: each sorted.

    Of large projects a run holds thousands of these, and most name the same files: a path is kept as text, and once.
    """

    files: tuple[str, ...] = ()  # that were read, or could not be
    sought: tuple[str, ...] = ()  # of which was asked whether they are there
    phrases: tuple[str, ...] = ()  # that the whole project was searched for

    @classmethod
    def of(cls, files: Iterable[str], sought: Iterable[str], phrases: Iterable[str]) -> Needs:
        """From what may be other copies of the same texts."""
        return cls(*(tuple(sorted(map(sys.intern, texts))) for texts in (files, sought, phrases)))

    def __reduce__(self) -> tuple[object, ...]:
        return Needs.of, (self.files, self.sought, self.phrases)


@dataclass(slots=True)
class _Asked:
    files: set[Path] = field(default_factory=set)  # that were run
    read: set[Path] = field(default_factory=set)  # for a class in them, which may have led on to others
    sought: set[str] = field(default_factory=set)
    phrases: set[str] = field(default_factory=set)
    library: tuple[Path, ...] = ()


class Ledger:
    """Takes down what every file of one project asked for."""

    def __init__(self) -> None:
        self._asked: dict[Path, _Asked] = {}

    def run(self, path: Path, files: Iterable[Path], sought: Iterable[str]) -> None:
        """For what is asked of `path`, other files are run, and some are looked for."""
        asked = self._of(path)
        asked.files.update(files)
        asked.sought.update(sought)

    def followed(self, path: Path, file: Path | None, sought: Iterable[str]) -> None:
        """A name in a file has led to another one, after some were looked for."""
        asked = self._of(path)
        asked.sought.update(sought)
        if file is not None:
            asked.read.add(file)

    def searched(self, path: Path, phrase: str) -> None:
        """The project is searched for a phrase."""
        self._of(path).phrases.add(phrase)

    def belongs(self, path: Path, library: tuple[Path, ...]) -> None:
        """A file belongs to a library, whose files may be looked up when it is run."""
        self._of(path).library = library

    def needs(self, path: Path) -> Needs:
        """All that the findings of a file rest on."""
        files, sought, phrases = set[Path](), set[str](), set[str]()
        followed = [path]
        for one in followed:  # which grows on the way
            asked = self._of(one)
            files |= {*asked.files, *asked.library} if one is path else set()
            sought |= asked.sought
            phrases |= asked.phrases if one is path else set()
            followed += asked.read.difference(followed)
        return Needs.of(map(str, {*files, *followed} - {path}), sought, phrases)

    def _of(self, path: Path) -> _Asked:
        return self._asked.setdefault(path, _Asked())
