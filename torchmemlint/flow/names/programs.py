"""Which files are parts of the same programs, and so look for modules in the same folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from torchmemlint.closure import closure
from torchmemlint.flow.names.finder import Finder, Place

Folders = frozenset[str]
NONE: Folders = frozenset()


def within(finder: Finder, folders: Iterable[str], dotted: str) -> Place | None:
    """Where a dotted name leads in some folders; None if it does in none, or in several to different files."""
    found = {place for folder in folders if (place := finder.below(folder, dotted)) is not None}
    return found.pop() if len(found) == 1 else None


class Programs:
    """Spreads what files add to `sys.path` over the programs that they are parts of.

    `names` are those that each file imports, `added` the folders that it adds.
    """

    def __init__(self, finder: Finder, names: Mapping[Path, Iterable[str]], added: Mapping[Path, Folders]) -> None:
        self._finder = finder
        self._own = dict(added)  # by file: what is added by it, and by those that it imports
        self._others: dict[Path, Folders] = {}  # what is added by those that import it, or that these import
        self._of: dict[Path, dict[Path, None]] = {}
        self._by: dict[Path, dict[Path, None]] = {}
        self._lost: dict[Path, list[str]] = {}  # what leads nowhere without these folders
        self._losing: dict[str, set[Path]] = {}  # by parts of such names
        for path, of_path in names.items():
            for dotted in of_path:
                if "*" in dotted:
                    continue
                if (place := finder.place(dotted, path)[0]) is not None:
                    self._connect(path, place[0])
                elif not dotted.startswith("."):
                    self._lost.setdefault(path, []).append(dotted)
                    for part in dotted.split("."):
                        self._losing.setdefault(part, set()).add(path)
        self._todo = dict.fromkeys(added)  # in order: what comes out must not depend on chance
        while self._todo:
            path = next(iter(self._todo))
            del self._todo[path]
            self._spread(path)

    def folders(self, path: Path) -> tuple[Folders, Folders]:
        """What a file and those that it imports have added, and what the programs around it have."""
        return self._own.get(path, NONE), self._others.get(path, NONE)

    def importers(self, path: Path) -> set[Path]:
        """The files that would import a file if they looked in the right folder, with all that those import."""
        end = path.parent.parts if path.stem == "__init__" else path.with_suffix("").parts
        found = (
            user
            for user in self._losing.get(end[-1], ())
            if any(_is_end(dotted.split("."), end) for dotted in self._lost[user])
        )
        return closure(found, lambda path: self._of.get(path, {}).keys())

    def is_like(self, other: Programs) -> bool:
        """Do both look for all names in the same folders?"""
        return (self._own, self._others) == (other._own, other._others)

    def _connect(self, path: Path, other: Path) -> None:
        self._of.setdefault(path, {})[other] = None
        self._by.setdefault(other, {})[path] = None

    def _spread(self, path: Path) -> None:
        for dotted in self._lost.get(path, ()):
            found = (within(self._finder, folders, dotted) for folders in self.folders(path))
            place = next((place for place in found if place is not None), None)
            if place is not None:
                self._connect(path, place[0])
                self._grow(self._own, path, self._own.get(place[0], NONE))
        for other in self._of.get(path, ()):
            self._grow(self._others, other, NONE.union(*self.folders(path)))
        for user in self._by.get(path, ()):
            self._grow(self._own, user, self._own.get(path, NONE))

    def _grow(self, known: dict[Path, Folders], path: Path, folders: Folders) -> None:
        if not folders <= known.get(path, NONE):
            known[path] = known.get(path, NONE) | folders
            self._todo[path] = None


def _is_end(parts: list[str], whole: tuple[str, ...]) -> bool:
    """Do the first of some parts, up to the last of the whole, end it?"""
    length = parts.index(whole[-1]) + 1 if whole[-1] in parts else 0
    return 0 < length <= len(whole) and tuple(parts[:length]) == whole[-length:]
