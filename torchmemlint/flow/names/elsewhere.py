"""Where imports lead in programs that change the folders in which Python looks.

What a file adds to `sys.path` holds for the whole program: for the file, for those that import it (perhaps for nothing
else) and for all that these import. In a file that adds folders itself, of which not all may be seen, a name that leads
nowhere else is taken for the only module or package of the project that has it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from torchmemlint.flow.ir.ops import Unit
from torchmemlint.flow.names.finder import Finder, path_in
from torchmemlint.flow.names.folders import CHANGED, added
from torchmemlint.flow.names.importing import imported
from torchmemlint.flow.names.programs import NONE, Folders, Programs, within
from torchmemlint.flow.names.sources import Found
from torchmemlint.flow.names.suites import is_test

T = TypeVar("T")
Texts = Callable[[Path], str | None]


class Elsewhere:
    """Finds what a `Finder` finds, and in programs that change `sys.path` what lies elsewhere in the project."""

    def __init__(
        self,
        finder: Finder,
        files: Callable[[], Iterable[Path]],
        text: Texts,
        unit: Callable[[Path], Unit | None],
        installed: Iterable[str] = (),
    ) -> None:
        """`files` are all of the project; `installed`: packages that do not lie in it."""
        self._finder, self._files, self._text, self._unit = finder, files, text, unit
        self._installed = sys.stdlib_module_names | {*installed}
        self._adds = _Told(text, self._read, NONE)
        self._imports: _Told[tuple[str, ...]] = _Told(text, lambda _, text: tuple(imported(text)), ())
        self._programs: Programs | None = None
        self._changing: set[Path] = set()

    def place(self, dotted: str, path: Path) -> Found:
        """The file that a dotted name leads to which a file imports, and what was looked for on the way."""
        place, sought = self._finder.place(dotted, path)
        first = dotted.partition(".")[0]
        if place is not None or not first or first in self._installed:
            return place, sought
        for folders in self._around().folders(path):
            sought |= {path_in(folder, name) for folder in folders for name in (first, f"{first}.py")}
            place = within(self._finder, folders, dotted)
            if place is not None:
                return place, sought
        if CHANGED not in (self._text(path) or ""):
            return None, sought
        sought |= {str(folder / name) for folder in self._everywhere for name in (first, f"{first}.py")}
        found = (self._finder.below(str(home), dotted) for home in self._homes.get(first, ()))
        places = {place for place in found if place is not None}
        least = min((len(rest) for _, rest in places), default=0)  # where most of the name leads to a file
        nearest = [place for place in places if len(place[1]) == least]
        return nearest[0] if len(nearest) == 1 else None, sought

    def matching(self, pattern: str, path: Path) -> list[Path]:
        """The modules that a file may mean by a dotted name with `*` where it is not known: of one package."""
        package, _, last = pattern.rpartition(".")
        folder = package.rpartition(".")[2] or path.parent.name
        if "*" in package or pattern == last:
            return []
        found = []
        for module in sorted(self._modules.get(folder, ())):
            name = _stem(module)
            if fnmatchcase(name, last) and self.place(f"{package}.{name}", path)[0] == (module, ""):
                found.append(module)
        return found

    def has_moved(self, path: Path) -> bool:
        """Do imports of other files lead elsewhere since a file has a new text?"""
        before = self._programs
        if before is None or not any([self._adds.is_other(path), self._changing and self._imports.is_other(path)]):
            return False
        self._programs = None
        return not self._around().is_like(before)

    def deciding(self, path: Path) -> set[Path]:
        """The files that decide whether any leads to this: those that may mean it, and those that change `sys.path`."""
        users = self._around().importers(path)
        return users | self._changing if users else set()

    def _around(self) -> Programs:
        if self._programs is None:
            files = list(self._files())
            self._changing = {path for path in files if CHANGED in (self._text(path) or "")}
            adding = {path: folders for path in sorted(self._changing) if (folders := self._adds(path))}
            names = {path: self._imports(path) for path in files} if self._changing else {}
            self._programs = Programs(self._finder, names, adding)
        return self._programs

    def _read(self, path: Path, text: str) -> Folders:
        """The folders of the project that a file with this text adds, but for the first, where all names are sought."""
        if CHANGED not in text or is_test(path.name, text):
            return NONE
        unit = self._unit(path)
        found = added(unit, path) if unit is not None else NONE
        root = str(self._finder.root)
        whole = {os.path.normpath(Path(start, one)) for one in found for start in (path.parent, root)}
        return frozenset(folder for folder in whole if folder.startswith(path_in(root, "")) and folder != root)

    @cached_property
    def _everywhere(self) -> set[Path]:
        return set().union(*self._homes.values())

    @cached_property
    def _modules(self) -> dict[str, set[Path]]:
        """The modules and packages by the name of the folder that they lie in."""
        found: dict[str, set[Path]] = {}
        for path in self._files():
            home = path.parent.parent if path.stem == "__init__" else path.parent
            found.setdefault(home.name, set()).add(path)
        return found

    @cached_property
    def _homes(self) -> dict[str, set[Path]]:
        """The folders in which something of a name lies."""
        found: dict[str, set[Path]] = {}
        for path in self._files():
            found.setdefault(path.stem, set()).add(path.parent)
            for folder in path.parents:
                if folder == self._finder.root or folder.parent in found.setdefault(folder.name, set()):
                    break
                found[folder.name].add(folder.parent)
        return found


def _stem(module: Path) -> str:
    return module.parent.name if module.stem == "__init__" else module.stem


class _Told(Generic[T]):
    """What follows from a file's text, kept as long as it has that."""

    def __init__(self, text: Texts, tell: Callable[[Path, str], T], nothing: T) -> None:
        self._text, self._tell, self._nothing = text, tell, nothing
        self._known: dict[Path, tuple[str, T]] = {}

    def __call__(self, path: Path) -> T:
        text, known = self._text(path) or "", self._known.get(path)
        if known is None or known[0] != text:
            known = self._known[path] = text, self._tell(path, text)
        return known[1]

    def is_other(self, path: Path) -> bool:
        """Is it another than it was when it was last asked for?"""
        _, before = self._known.get(path, ("", self._nothing))
        return self(path) != before
