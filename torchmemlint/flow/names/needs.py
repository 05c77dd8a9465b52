"""What the analysis of a file asks of the rest of its project: while the answers stay the same, so do its findings.

A project's answers are kept from file to file, so an answer has to bring along what it rests on itself. That is taken
down by question: what a dotted name stands for in a file, and all that a file asks for on its own account.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from torchmemlint.immutable import immutable

Question: TypeAlias = "tuple[str, Path]"  # a name and the file that is asked for it; "" for what a file asks itself


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
    files: set[Path] = field(default_factory=set)
    texts: set[Path] = field(default_factory=set)  # files that were read, and nothing of what these rest on
    sought: set[str] = field(default_factory=set)
    phrases: set[str] = field(default_factory=set)
    questions: set[Question] = field(default_factory=set)


class Ledger:
    """Takes down what every question of one project led to."""

    def __init__(self) -> None:
        self._asked: dict[Question, _Asked] = {}
        self._open: list[_Asked] = []

    @contextmanager
    def asking(self, question: Question) -> Iterator[None]:
        """What is taken down meanwhile belongs to this question, and this question to the one around it."""
        if self._open:
            self._open[-1].questions.add(question)
        self._open.append(self._asked.setdefault(question, _Asked()))
        try:
            yield
        finally:
            self._open.pop()

    @contextmanager
    def of_file(self, path: Path) -> Iterator[None]:
        """What is taken down meanwhile is asked on a file's own account, whatever else is being asked."""
        outer, self._open = self._open, [self._asked.setdefault(("", path), _Asked())]
        try:
            yield
        finally:
            self._open = outer

    def by(self, path: Path) -> AbstractContextManager[None]:
        """What is taken down meanwhile belongs to the question that is being asked, else to the file."""
        return nullcontext() if self._open else self.of_file(path)

    def read(self, path: Path) -> None:
        """A file's text is asked for."""
        for asked in self._open[-1:]:
            asked.files.add(path)

    def run(self, paths: Iterable[Path], sought: Iterable[str]) -> None:
        """Files are run that look for others."""
        for asked in self._open[-1:]:
            asked.texts.update(paths)
            asked.sought.update(sought)

    def sought(self, paths: frozenset[str]) -> None:
        """It is asked whether these are there."""
        for asked in self._open[-1:]:
            asked.sought |= paths

    def searched(self, phrase: str) -> None:
        """The project is searched for a phrase."""
        for asked in self._open[-1:]:
            asked.phrases.add(phrase)

    def asked(self, question: Question) -> None:
        """A question is asked that was answered before."""
        for asked in self._open[-1:]:
            asked.questions.add(question)

    def needs(self, path: Path) -> Needs:
        """All that a file's analysis rests on, by way of all that it led to."""
        files: set[Path] = set()
        texts: set[Path] = set()
        sought: set[str] = set()
        phrases: set[str] = set()
        pending: list[Question] = [("", path)]
        seen = set(pending)
        while pending:
            asked = self._asked.get(pending.pop())
            if asked is None:
                continue
            texts |= asked.texts
            sought |= asked.sought
            phrases |= asked.phrases
            others = {("", file) for file in asked.files - files} | asked.questions
            files |= asked.files
            pending += others - seen
            seen |= others
        return Needs.of(map(str, (files | texts) - {path}), sought, phrases)
