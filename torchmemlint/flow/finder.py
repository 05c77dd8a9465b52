"""Where a dotted name leads, by the file system alone: no file is opened.

A name is looked up as Python does: relative imports from the importing file's own package, absolute ones from the
folders that Python would have on its path: the one above the file's top package, the project's root and its `src/`, the
file's own folder, and the one above a folder around it that has the name of the package. Packages come before modules,
and folders without `__init__.py` (namespace packages) last.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

Place = tuple[Path, str]  # a file, and what is left of the name for it to define


class Finder:
    """Finds the files below `root` that imports stand for. Remembers what lies in folders."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._names: dict[str, frozenset[str]] = {}  # of folders
        self._places: dict[tuple[str, Path], tuple[Place | None, frozenset[Path]]] = {}
        self._looked_for: set[Path] = set()  # by the running search

    def place(self, qualified: str, path: Path) -> tuple[Place | None, frozenset[Path]]:
        """The file that a dotted name, as imported by the file `path`, leads to; and what was looked for on the way."""
        key = (qualified, path.parent)
        if key not in self._places:
            self._looked_for = set()
            try:
                place = self._find(qualified, path)
            except OSError:  # a folder that may be listed and not entered
                place = None
            self._places[key] = place, frozenset(self._looked_for)
        return self._places[key]

    def is_package(self, folder: Path) -> bool:
        """Has a folder an `__init__.py`?"""
        return self._has(folder, "__init__.py")

    def is_folder(self, path: Path) -> bool:
        """Is it a folder, perhaps by way of a link?"""
        return path.is_dir()

    def names_in(self, folder: Path) -> Iterable[str]:
        """What lies in a folder. Raises OSError where it cannot be listed."""
        return (entry.name for entry in os.scandir(folder))

    def _find(self, qualified: str, path: Path) -> Place | None:
        level = len(qualified) - len(qualified.lstrip("."))
        parts = [part for part in qualified[level:].split(".") if part]
        if level:
            folder = path.parent
            for _ in range(level - 1):
                folder = folder.parent
            return self._module(folder, parts, inside=True)
        within_namespace: Place | None = None
        for folder in self._search_path(path, parts[0]) if parts else ():
            found = self._module(folder, parts)
            if found is None:
                continue
            if self._is_regular(folder, parts[0]):
                return found
            within_namespace = within_namespace or found
        return within_namespace

    def _module(self, folder: Path, parts: list[str], *, inside: bool = False) -> Place | None:
        """The file of a name below a folder; `inside`: of a name in the folder's own package."""
        for index, part in enumerate(parts):
            if self._has(folder, part) and self.is_package(folder / part):
                folder = folder / part
            elif self._has(folder, f"{part}.py"):
                return folder / f"{part}.py", ".".join(parts[index + 1 :])
            elif self._has(folder, part) and self.is_folder(folder / part):
                folder = folder / part  # a namespace package
            elif (inside or index) and self.is_package(folder):
                return folder / "__init__.py", ".".join(parts[index:])
            else:
                return None
        return (folder / "__init__.py", "") if self.is_package(folder) else None

    def _is_regular(self, folder: Path, name: str) -> bool:
        """Is it a module or a package with an `__init__.py`?"""
        return self._has(folder, f"{name}.py") or self.is_package(folder / name)

    def _search_path(self, path: Path, package: str) -> Iterator[Path]:
        above = path.parent
        while self.is_package(above) and above != above.parent:
            above = above.parent
        around = (one.parent for one in path.parents if one.name == package and self.root in one.parents)
        yield from dict.fromkeys((above, self.root, self.root / "src", path.parent, *around))

    def _has(self, folder: Path, name: str) -> bool:
        """Is there such a name in a folder?"""
        self._looked_for.add(folder / name)
        key = str(folder)
        if key not in self._names:
            try:
                self._names[key] = frozenset(self.names_in(folder))
            except OSError:
                self._names[key] = frozenset()
        return name in self._names[key]
