"""Which files of a project import which, told from their text alone."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from torchmemlint.closure import closure
from torchmemlint.flow.names.sources import Locate, Matching

_IMPORT = re.compile(r"import\b(?<!\wimport)[ \t]+(\([^)]*\)|[^\n#;]*)")  # begins with letters: these are found fast
_BEFORE = re.compile(r"(?:.*[;:])?[ \t]*(?:from[ \t]+(\.*[ \t]*[\w.]*)[ \t]+)?")  # what else stands on its line
BY_NAME = "import_module("  # what a file says that imports modules whose names it makes
_NAMED = re.compile(r"""import_module\(\s*f?["']([\w.]*\w)["']""")
_BEGUN = re.compile(r"""["'](\.(?=["'][ \t]*\+|\{)|\w+(?:\.\w+)*\.(?=["'{]))""")  # "models." + name, f".{name}"
_MOST_BEFORE = 200  # characters
_LARGE = 1_000_000  # characters
_MOST_USERS = 40  # importing files that are run to judge a file, at most
_NAME = re.compile(r"(\w+(?:\.\w+)*)(?:\s+as\s+\w+)?")


def imported(text: str) -> Iterator[str]:
    """Yield the dotted names that a file imports, those of relative imports with their dots."""
    for found in _IMPORT.finditer(text):
        start = found.start()
        line = max(text.rfind("\n", 0, start) + 1, start - _MOST_BEFORE)
        before = _BEFORE.fullmatch(text, line, start)
        if before is None:
            continue
        module, names = before.group(1), found.group(1)
        if module is None:
            yield from _NAME.findall(names)
            continue
        base = module.replace(" ", "").replace("\t", "")
        if not base:
            continue
        if "*" in names:
            yield base
        for name in _NAME.findall(names):
            yield base + name if base.endswith(".") else f"{base}.{name}"
    if BY_NAME in text:
        yield from _NAMED.findall(text)
        yield from (f"{package}*" for package in _BEGUN.findall(text))


class Imports:
    """The files of a project, each with those that it imports and those that import it."""

    def __init__(
        self,
        files: Iterable[tuple[Path, str]],
        locate: Locate,
        matching: Matching,
        matters: Callable[[str, list[str]], bool],
    ) -> None:
        """`matters` says of a text, and of what it imports from outside, whether its importers are worth running."""
        self._same: dict[Path, Path] = {}  # one object for each path: two are compared slowly
        self._of: dict[Path, set[Path]] = {}
        self._by: dict[Path, set[Path]] = {}
        self._aside: dict[Path, set[Path]] = {}  # what files import that are none of those, but checked
        self._locate, self._matching = locate, matching
        self._matters = matters
        self._sizes: dict[Path, int] = {}
        self._mattering: set[Path] = set()
        self._circles: dict[Path, tuple[Path, ...]] = {}
        self._users: dict[Path, tuple[Path, ...]] = {}
        self._large: dict[Path, tuple[Path, ...] | None] = {}
        self._libraries: dict[tuple[Path, ...], tuple[Path, ...]] = {}
        for path, text in files:
            path = self._same.setdefault(path, path)
            self._connect(path, self._imported(path, text))

    @property
    def files(self) -> Collection[Path]:
        """All files that show how others are used."""
        return self._of.keys()

    def holds(self, path: Path) -> bool:
        """Is it known what a file imports?"""
        return path in self._of or path in self._aside

    def put(self, path: Path, text: str) -> None:
        """Take a file's text for what it imports. What is none of the files says nothing of those that it imports."""
        path = self._same.setdefault(path, path)
        found = self._imported(path, text)
        if path not in self._of:
            self._aside[path] = found
            return
        for known in (self._circles, self._users, self._large, self._libraries):
            known.clear()
        for other in self._of[path]:
            self._by[other].discard(path)
        self._connect(path, found)

    def _connect(self, path: Path, found: set[Path]) -> None:
        self._of[path] = found
        for other in found:
            self._by.setdefault(other, set()).add(path)

    def _imported(self, path: Path, text: str) -> set[Path]:
        """The files that a file with this text imports. It is noted whether its importers are worth running."""
        self._sizes[path] = len(text)
        found = set[Path]()
        outside: list[str] = []
        for dotted in imported(text):
            if "*" in dotted:
                found.update(self._same.setdefault(one, one) for one in self._matching(dotted, path) if one != path)
                continue
            place, _ = self._locate(dotted, path)
            if place is None:
                outside.append(dotted)
            elif place[0] != path:
                found.add(self._same.setdefault(place[0], place[0]))
        if self._matters(text, outside):
            self._mattering.add(path)
        else:
            self._mattering.discard(path)
        return found

    def group(self, path: Path) -> tuple[Path, ...]:
        """The files that are run together: a file with its circle, but in a library each by itself."""
        return (path,) if self.is_library(path) else self.circle(path)

    def circle(self, path: Path) -> tuple[Path, ...]:
        """A file with those that it imports and that import it, too, directly or not; in order."""
        if path not in self._circles:
            back = closure(self._by.get(path, ()), lambda one: self._by.get(one, ())) if path in self._of else set()
            members = tuple(sorted({path, *(self.used(path) & back)}))
            self._circles.update(dict.fromkeys(members, members))
        return self._circles[path]

    def matter(self, group: tuple[Path, ...]) -> bool:
        """Is a group of files worth running, for what they or those that they import say?"""
        imported = self._direct(group[0]) if self.is_library(group[0]) else self.used(group[0])
        return not self._mattering.isdisjoint({*group, *imported})

    def is_library(self, path: Path) -> bool:
        """Does a file belong to a library: so many files that import each other, and all that those import?"""
        return self._large_circle(path) is not None

    def library(self, path: Path) -> tuple[Path, ...]:
        """The files of the library that a file belongs to; none for others."""
        circle = self._large_circle(path)
        if circle is None:
            return ()
        if circle not in self._libraries:
            self._libraries[circle] = tuple(sorted({*circle, *self.used(circle[0])}))
        return self._libraries[circle]

    def _large_circle(self, path: Path) -> tuple[Path, ...] | None:
        """The files that import each other and are too many, with this file among them or imported by them."""
        if path not in self._large:
            circles = itertools.chain([self.circle(path)], map(self.circle, sorted(self.users(path))))
            large = next((c for c in circles if sum(self._sizes.get(member, 0) for member in c) > _LARGE), None)
            self._large.update(dict.fromkeys(self.circle(path), large))
        return self._large[path]

    def used(self, path: Path) -> set[Path]:
        """The files that a file imports, directly or not."""
        return closure(self._direct(path), lambda one: self._of.get(one, ()))

    def _direct(self, path: Path) -> set[Path]:
        return self._of[path] if path in self._of else self._aside.get(path, set())

    def is_alone(self, path: Path) -> bool:
        """Does a file import none of the others but a library's, and none of them it?"""
        return not self._by.get(path) and all(map(self.is_library, self._direct(path)))

    def users(self, path: Path) -> tuple[Path, ...]:
        """The files that import a file, directly or not, other than its circle: the nearest first."""
        if path not in self._users:
            circle = self.circle(path)
            found, seen, around = list[Path](), set(circle), set(circle)
            while around:
                around = {user for one in around for user in self._by.get(one, ())} - seen
                found += sorted(around)
                seen |= around
            self._users.update(dict.fromkeys(circle, tuple(found)))
        return self._users[path]

    def seen_users(self, path: Path) -> list[Path]:
        """The files that are run to judge what is in one that they import. Of a library's there are too many."""
        if self.is_library(path):
            return []
        users = (user for user in self.users(path) if not self.is_library(user))
        return list(itertools.islice(users, _MOST_USERS))

    def groups(self, path: Path) -> list[tuple[Path, ...]]:
        """The files that are run with a file, and of those that import it the nearest."""
        return sorted({self.group(user) for user in (path, *self.seen_users(path))})

    def concern(self, path: Path) -> tuple[set[Path], set[Path]]:
        """The files that make a file worth running: that it imports, or that import it. And those that were asked.

        None of a library is run for another's sake.
        """
        if self.is_library(path):
            return set(), set()
        groups = self.groups(path)
        asked = {*itertools.chain(*groups, *(self.used(group[0]) for group in groups))} - {path}
        return asked & self._mattering, asked
